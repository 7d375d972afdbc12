package step_test

import (
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// fullStep has every field set, so that a forgotten one shows.
func fullStep() step.Step {
	return step.Step{
		Number: 12, SessionID: "s1", ToolName: "fs:read_file", CalledAs: "read_file",
		MinimalArgs: raw(`{"path":"a"}`), Args: raw(`{"path":"a","x":1}`), Observation: "Read a (1 bytes, text)",
		OutcomeRef: sha("a"), OutcomePath: "workspace/outputs/read_012.txt", Time: time.UnixMicro(1700000000000123).UTC(),
		Outcome: step.Failed, Thought: "hm", Error: "no", ErrorCode: "NOT_FOUND", Inline: "a",
		Metadata: raw(`{"size":1}`), TurnID: "t", CallID: "c", Pinned: true, Evidence: "e", ArgsPath: "p",
	}
}

// A03
func TestStepsComeBackAsTheyWere(t *testing.T) {
	for _, want := range []step.Step{fullStep(), {Number: 1}} {
		got, err := step.Decode(step.Append(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		step step.Step
		want string
	}{
		{"full", fullStep(), "080c" + "12027331" + "1a0c66733a726561645f66696c65" + "2209726561645f66696c65" + "3a165265616420612028312062797465732c207465787429" + "424063613937383131326361316262646361666163323331623339613233646334646137383665666638313437633465373262393830373738356166656534386262" + "4a1e776f726b73706163652f6f7574707574732f726561645f3031322e747874" + "6202686d" + "6a026e6f" + "72094e4f545f464f554e44" + "7a0161" + "8a010174" + "92010163" + "a2010165" + "aa010170" + "2a0c7b2270617468223a2261227d" + "32127b2270617468223a2261222c2278223a317d" + "82010a7b2273697a65223a317d" + "50f681f28183898506" + "5801" + "980101"},
		{"bare", step.Step{Number: 300}, "08ac02"},
		{"time zero of the format", step.Step{Number: 1, Time: time.UnixMicro(0)}, "08015000"},
	} {
		if got := hex.EncodeToString(step.Append([]byte{0xff}, tt.step)); got != "ff"+tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDecodePassesOverFieldsOfLaterVersions(t *testing.T) {
	stored := step.Append(nil, fullStep())
	stored = protowire.AppendString(protowire.AppendTag(stored, 900, protowire.BytesType), "later")
	stored = protowire.AppendVarint(protowire.AppendTag(stored, 901, protowire.VarintType), 7)
	stored = protowire.AppendFixed32(protowire.AppendTag(stored, 902, protowire.Fixed32Type), 7)
	got, err := step.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fullStep(), got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefusesWhatIsNoStep(t *testing.T) {
	whole := step.Append(nil, fullStep())
	unknownOutcome := protowire.AppendVarint(protowire.AppendTag(whole[:len(whole):len(whole)], 11, protowire.VarintType), 3)
	for _, stored := range [][]byte{nil, {0}, {0x0a}, whole[:len(whole)-1], unknownOutcome} {
		if _, err := step.Decode(stored); !errors.Is(err, step.ErrDamaged) {
			t.Errorf("Decode(%d bytes) = %v, want ErrDamaged", len(stored), err)
		}
	}
}

// FuzzDecode: garbage never panics, and what decodes encodes to what decodes to
// the same.
func FuzzDecode(f *testing.F) {
	f.Add(step.Append(nil, fullStep()))
	f.Add([]byte{0x08, 0x01})
	f.Fuzz(func(t *testing.T, stored []byte) {
		s, err := step.Decode(stored)
		if err != nil {
			return
		}
		again, err := step.Decode(step.Append(nil, s))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, again, cmpEmptyJSON); diff != "" {
			t.Fatal(diff)
		}
	})
}

// cmpEmptyJSON takes an empty document for a missing one.
var cmpEmptyJSON = cmp.Transformer("string", func(b []byte) string { return string(b) })

func BenchmarkAppendAndDecode(b *testing.B) {
	s := fullStep()
	for b.Loop() {
		if _, err := step.Decode(step.Append(nil, s)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReduceReadOf4KiB(b *testing.B) {
	r := step.NewReducer(nil)
	content := make([]byte, 4096)
	for i := range content {
		content[i] = "abc\n"[i%4]
	}
	call := readCall("src/a.go", string(content))
	for b.Loop() {
		r.Reduce(call)
	}
}
