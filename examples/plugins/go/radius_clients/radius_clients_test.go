package main

import (
	"strings"
	"testing"
)

func TestEachExampleIsTaken(t *testing.T) {
	for _, example := range described.Example {
		text, _ := answer([]byte(`{"options": {"digits": 3}, "run": {"seed": 1, "abi": 1}}`))
		if !strings.Contains(string(text), `"scenario"`) {
			t.Fatalf("%s: %s", example.About, text)
		}
	}
}

func TestTheLengthIsThatOfTheMessage(t *testing.T) {
	scenario, fault := compile([]byte(`{"user": "u", "digits": 2}`), Run{})
	if fault != nil || !strings.Contains(scenario.Streams[0].Frame, `raw(hex="0100002b`) {
		t.Fatal(scenario, fault)
	}
}

func TestWhatDoesNotFitIsNamed(t *testing.T) {
	if _, fault := compile([]byte(`{"digits": 10}`), Run{}); fault == nil || fault.Path != "/digits" {
		t.Fatal(fault)
	}
}
