package main

import (
	"bytes"
	"testing"
)

func opened1(t *testing.T, options string) Frames {
	frames, fault := open([]byte(options))
	if fault != nil {
		t.Fatal(fault)
	}
	return frames
}

func TestFramesAreFunctionsOfTheirNumber(t *testing.T) {
	f := opened1(t, `{"flows": 2500}`)
	forwards := batch(f, 0, 7, 64, nil)
	for i := 63; i >= 0; i-- {
		frame := f.Frame(uint64(7*i), nil)
		if start := 128 + 60*i; !bytes.Equal(frame, forwards[start:start+60]) {
			t.Fatal("frame", 7*i)
		}
	}
}

func TestTheHeaderSumIsRight(t *testing.T) {
	f := opened1(t, `{"size": 1514}`)
	for _, n := range []uint64{0, 999, 1000, 65535, 1 << 40} {
		if frame := f.Frame(n, nil); checksum(sum(frame[14:34], 0)) != 0 {
			t.Fatal("frame", n)
		}
	}
}

func TestWhatDoesNotFitIsNamed(t *testing.T) {
	if _, fault := open([]byte(`{"size": 59}`)); fault == nil || fault.Path != "/size" {
		t.Fatal(fault)
	}
}
