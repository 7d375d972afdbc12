package step_test

import (
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
		Metadata: raw(`{"size":1}`), TurnID: "t", CallID: "c",
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
