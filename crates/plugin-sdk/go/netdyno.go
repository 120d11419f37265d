// netdyno's plugins in Go: what a plugin is. Copy this file and netdyno_wasm.go beside your own; docs/writing-plugins.md has the
// interface. This file knows no WebAssembly, so that `go test` runs a plugin on any machine.

package main

import "encoding/json"

// Description is what a plugin says about itself. Options is the JSON Schema (draft 2020-12) of its options.
type Description struct {
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	About      string          `json:"about"`
	World      string          `json:"world"`
	Options    json.RawMessage `json:"options"`
	Example    []Example       `json:"example"`
	Restricted bool            `json:"restricted"`
}

// Example is options that do something useful.
type Example struct {
	About string         `json:"about"`
	Set   map[string]any `json:"set"`
}

// Run is the run that traffic is made for. Seed is nil if it is not known yet.
type Run struct {
	Seed *uint64 `json:"seed"`
	ABI  int     `json:"abi"`
}

// Fault is options that a plugin cannot use. Path is the JSON pointer of one of them, such as "/flows", or empty.
type Fault struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Scenario is what to send, in the terms of docs/scenarios.md. What is left out has its default.
type Scenario struct {
	Name     string   `json:"name,omitempty"`
	Duration string   `json:"duration,omitempty"`
	Count    uint64   `json:"count,omitempty"`
	Rate     string   `json:"rate,omitempty"`
	Streams  []Stream `json:"streams"`
}

// Stream is frames that belong together. Frame is a packet expression (docs/expressions.md).
type Stream struct {
	Name   string `json:"name,omitempty"`
	Frame  string `json:"frame"`
	Size   string `json:"size,omitempty"`
	Weight uint32 `json:"weight,omitempty"`
	Rate   string `json:"rate,omitempty"`
	Count  uint64 `json:"count,omitempty"`
}

// Frames is what a plugin of the frames world makes. Frame n is a function of n and of the options, and of nothing else.
type Frames interface {
	// Longest is the length of the longest frame in bytes, without frame check sequence.
	Longest() int
	// Count is the number of frames; 0: without end.
	Count() uint64
	// Frame appends the bytes of frame n.
	Frame(n uint64, to []byte) []byte
}

// What init functions of the plugin's own file set, by Compiles or Yields.
var (
	described Description
	compiled  func(options json.RawMessage, run Run) (*Scenario, *Fault)
	opened    func(options json.RawMessage, run Run) (Frames, *Fault)
)

// Compiles declares a plugin of the compile world.
func Compiles(d Description, compile func(options json.RawMessage, run Run) (*Scenario, *Fault)) {
	d.World = "compile"
	described, compiled = d, compile
}

// Yields declares a plugin of the frames world.
func Yields(d Description, open func(options json.RawMessage, run Run) (Frames, *Fault)) {
	d.World = "frames"
	described, opened = d, open
}

// answer carries out what netdyno asks: the input and the answer are JSON.
func answer(input []byte) ([]byte, Frames) {
	var in struct {
		Options json.RawMessage `json:"options"`
		Run     Run             `json:"run"`
	}
	out := map[string]any{}
	var frames Frames
	if err := json.Unmarshal(input, &in); err != nil {
		out["fault"] = Fault{Message: "the input is not as it must be: " + err.Error()}
	} else if compiled != nil {
		if scenario, fault := compiled(in.Options, in.Run); fault != nil {
			out["fault"] = fault
		} else {
			out["scenario"] = scenario
		}
	} else if f, fault := opened(in.Options, in.Run); fault != nil {
		out["fault"] = fault
	} else {
		frames = f
		announced := map[string]any{"longest": f.Longest(), "count": nil}
		if f.Count() > 0 {
			announced["count"] = f.Count()
		}
		out["frames"] = announced
	}
	text, err := json.Marshal(out)
	if err != nil {
		text = []byte(`{"fault":{"path":"","message":"the answer is no JSON"}}`)
	}
	return text, frames
}

// batch is count frames: their lengths, 16 bits each, then the frames; both at multiples of 4 bytes.
func batch(frames Frames, first, step uint64, count int, to []byte) []byte {
	to = to[:0]
	for len(to) < (2*count+3)&^3 {
		to = append(to, 0)
	}
	for i := range count {
		start := len(to)
		to = frames.Frame(first+step*uint64(i), to)
		// A longer one is refused as it is; 16 bits of its length might look sound.
		length := min(len(to)-start, 0xffff)
		to[2*i], to[2*i+1] = byte(length), byte(length>>8)
		for len(to)&3 != 0 {
			to = append(to, 0)
		}
	}
	return to
}

// sum adds bytes to an Internet checksum (RFC 1071) that is folded later.
func sum(bytes []byte, before uint32) uint32 {
	i := 0
	for ; i+1 < len(bytes); i += 2 {
		before += uint32(bytes[i])<<8 | uint32(bytes[i+1])
	}
	if i < len(bytes) {
		before += uint32(bytes[i]) << 8
	}
	return before
}

// checksum folds a sum.
func checksum(sum uint32) uint16 {
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
