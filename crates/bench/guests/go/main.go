// The frames of `netdyno-bench --only plugins`, one by one from a module written in Go.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o ports_go.wasm .
package main

import (
	"encoding/binary"
	"unsafe"
)

const about = `{"name":"ports_go","version":"1","about":"Datagrams from many addresses and ports.","world":"frames",` +
	`"options":{"type":"object","additionalProperties":false}}`
const opened = `{"frames":{"longest":60,"count":null}}`

var (
	input  []byte
	output []byte
	frame  = [60]byte{
		2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 198, 18,
		0, 2, 4, 0, 0, 9, 0, 26,
	}
)

func returned(bytes []byte) int64 {
	output = bytes
	return int64(uintptr(unsafe.Pointer(&output[0])))<<32 | int64(len(output))
}

//go:wasmexport netdyno_abi
func abi() int32 { return 1 }

//go:wasmexport netdyno_alloc
func alloc(length int32) int32 {
	input = make([]byte, length+1)
	return int32(uintptr(unsafe.Pointer(&input[0])))
}

//go:wasmexport netdyno_describe
func describe() int64 { return returned([]byte(about)) }

//go:wasmexport netdyno_open
func open(at, length int32) int64 { return returned([]byte(opened)) }

//go:wasmexport netdyno_frames
func frames(first, step int64, count int32) int64 {
	table := (2*int(count) + 3) &^ 3
	need := table + 60*int(count)
	if cap(output) < need {
		output = make([]byte, need)
	}
	output = output[:need]
	n := uint64(first)
	for i := 0; i < int(count); i++ {
		binary.LittleEndian.PutUint16(output[2*i:], 60)
		own := output[table+60*i : table+60*i+60]
		copy(own, frame[:])
		binary.BigEndian.PutUint16(own[28:], uint16(n))
		binary.BigEndian.PutUint16(own[34:], uint16(1024+n%64512))
		sum := uint32(0)
		for at := 14; at < 34; at += 2 {
			sum += uint32(binary.BigEndian.Uint16(own[at:]))
		}
		sum = sum>>16 + sum&0xffff
		binary.BigEndian.PutUint16(own[24:], ^uint16(sum>>16+sum))
		n += uint64(step)
	}
	return int64(uintptr(unsafe.Pointer(&output[0])))<<32 | int64(need)
}

func main() {}
