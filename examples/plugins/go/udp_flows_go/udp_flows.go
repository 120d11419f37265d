// UDP flows: a plugin of the frames world. It shows how frames are made fast: a template, and what differs written over it.

package main

import (
	"encoding/binary"
	"encoding/json"
)

type flows struct {
	Flows uint64 `json:"flows"`
	Size  int    `json:"size"`
	// Ethernet, IPv4 and UDP, with all that does not vary.
	template []byte
	// The sum of the IPv4 header but for the source address.
	sum uint32
}

func init() {
	Yields(Description{
		Name:    "udp_flows_go",
		Version: "0.1.0",
		About:   "UDP datagrams of so many flows, frame by frame: each source address has 1,000 ports.",
		Options: json.RawMessage(`{
			"type": "object",
			"additionalProperties": false,
			"properties": {
				"flows": {"type": "integer", "default": 65536, "minimum": 1, "maximum": 16000000, "description": "Number of flows."},
				"size": {"type": "integer", "default": 60, "minimum": 60, "maximum": 1514, "description": "Bytes of a frame, without frame check sequence."}
			}
		}`),
		Example: []Example{
			{About: "65,536 flows of small frames", Set: map[string]any{}},
			{About: "Ten flows of full frames", Set: map[string]any{"flows": 10, "size": 1514}},
		},
	}, func(text json.RawMessage, _ Run) (Frames, *Fault) {
		return open(text)
	})
}

func open(text json.RawMessage) (Frames, *Fault) {
	f := &flows{Flows: 65536, Size: 60}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, &Fault{Message: err.Error()}
	}
	if f.Flows < 1 || f.Flows > 16000000 {
		return nil, &Fault{Path: "/flows", Message: "1 to 16000000"}
	}
	if f.Size < 60 || f.Size > 1514 {
		return nil, &Fault{Path: "/size", Message: "60 to 1514"}
	}
	f.template = make([]byte, f.Size)
	copy(f.template, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 0, 198, 18, 0, 1, 0, 0, 0, 9})
	binary.BigEndian.PutUint16(f.template[16:], uint16(f.Size-14))
	binary.BigEndian.PutUint16(f.template[38:], uint16(f.Size-34))
	f.sum = sum(f.template[14:34], 0) - 10<<8
	return f, nil
}

func (f *flows) Longest() int  { return f.Size }
func (f *flows) Count() uint64 { return 0 }

func (f *flows) Frame(n uint64, to []byte) []byte {
	start := len(to)
	to = append(to, f.template...)
	frame := to[start:]
	flow := n % f.Flows
	source := uint32(10<<24 + flow/1000)
	binary.BigEndian.PutUint32(frame[26:], source)
	binary.BigEndian.PutUint16(frame[24:], checksum(f.sum+source>>16+source&0xffff))
	binary.BigEndian.PutUint16(frame[34:], uint16(10000+flow%1000))
	return to
}
