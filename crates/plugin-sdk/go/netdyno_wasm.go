// What a module exports. Go builds this file for WebAssembly only.

package main

import (
	"encoding/json"
	"unsafe"
)

var (
	input  []byte
	output []byte
	source Frames
)

// Go collects no memory that these hold, and moves none.
func packed(bytes []byte) int64 {
	output = bytes
	if len(bytes) == 0 {
		return 0
	}
	return int64(uintptr(unsafe.Pointer(&bytes[0])))<<32 | int64(len(bytes))
}

//go:wasmexport netdyno_abi
func netdynoABI() int32 { return 1 }

//go:wasmexport netdyno_alloc
func netdynoAlloc(length int32) int32 {
	if length < 0 || length > 16<<20 {
		return 0
	}
	input = make([]byte, max(length, 1))
	return int32(uintptr(unsafe.Pointer(&input[0])))
}

//go:wasmexport netdyno_describe
func netdynoDescribe() int64 {
	text, err := json.Marshal(described)
	if err != nil {
		return 0
	}
	return packed(text)
}

//go:wasmexport netdyno_compile
func netdynoCompile(at, length int32) int64 {
	text, _ := answer(written(at, length))
	return packed(text)
}

//go:wasmexport netdyno_open
func netdynoOpen(at, length int32) int64 {
	text, frames := answer(written(at, length))
	source = frames
	return packed(text)
}

//go:wasmexport netdyno_frames
func netdynoFrames(first, step int64, count int32) int64 {
	if source == nil || count < 0 {
		return 0
	}
	output = batch(source, uint64(first), uint64(step), int(count), output)
	return packed(output)
}

// written is what the host wrote where netdynoAlloc said.
func written(_, length int32) []byte {
	if length < 0 || int(length) > len(input) {
		return nil
	}
	return input[:length]
}

func main() {}
