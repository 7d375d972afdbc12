package step_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// textResult is a result that was given as text.
func textResult(text string) step.Result {
	return step.Result{Form: step.FormText, BodyKey: "output", BodyText: text, BodySize: int64(len(text))}
}

// mustParse is a result that was given as JSON.
func mustParse(tb testing.TB, text string) step.Result {
	tb.Helper()
	result, err := step.ParseResult([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return result
}

func jsonText(v any) string { return string(text.CanonicalJSON(v)) }

// A19: what Reduce says of a result restores it, whatever was given: nothing of the
// text that is derived from it is needed.
func FuzzGivenIsRestored(f *testing.F) {
	for _, text := range []string{
		`{"stdout":"a\nb","stderr":"é","exit_code":0}`, `{"content":"x\u0000y","n":1.0}`, `"text"`, `[1e5, -0.0]`, ` null `,
		`{"stdout":"a","stdout":"\/"}`, `{"stderr":"e","pid":4,"stdout":"o"}`, `{"error_code":"E42"}`, "plain", "ab\x00c", "\xff\xfe", "",
		`{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}`, "data:image/png;base64,iVBORw0KGgo=",
	} {
		for tool := range len(givenTools) {
			f.Add([]byte(text), uint8(tool), true, false)
			f.Add([]byte(text), uint8(tool), false, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, tool uint8, asJSON, long bool) {
		if long {
			data = slices.Concat(data, []byte(strings.Repeat(" ", 1<<10)))
		}
		call := step.Call{Tool: givenTools[int(tool)%len(givenTools)], Result: textResult(string(data))}
		call.Result.BodyBinary = !utf8.Valid(data)
		if asJSON {
			parsed, err := step.ParseResult(bytes.Clone(data))
			if err != nil || !utf8.Valid(data) {
				return
			}
			call.Result = parsed
		}
		for _, opts := range []*step.Options{nil, {InlineBytes: 40}, {HideOffloaded: true}} {
			if got := restored(t, call, step.NewReducer(opts).Reduce(call)); !bytes.Equal(got, data) {
				t.Fatalf("%s gave %q, restored is %q", call.Tool, data, got)
			}
		}
	})
}

var givenTools = []string{
	"my:tool", step.ToolShell, step.ToolReadFile, step.ToolWriteFile, step.ToolListDir, step.ToolSearchWeb, step.ToolNavigate, step.ToolWeather,
}

// restored is the result as a step and its blobs give it back.
func restored(t *testing.T, call step.Call, red step.Reduced) []byte {
	t.Helper()
	offloaded := red.OffloadBytes
	if offloaded == nil {
		offloaded = []byte(call.Result.BodyText)
	}
	if red.Offload != (red.OffloadExt != "") {
		t.Fatalf("offload %t as %q", red.Offload, red.OffloadExt)
	}
	switch red.Given.Source {
	case step.SourceInline:
		return []byte(red.Inline)
	case step.SourceStep:
		return red.Given.Data
	case step.SourceOutcome:
		if !red.Offload {
			t.Fatal("the outcome is not kept")
		}
		return offloaded
	case step.SourceFrame:
		whole, err := step.Unframe(red.Given.Data, offloaded)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	case step.SourceBlob:
		if !red.KeepGiven {
			t.Fatal("nothing is kept")
		}
		if call.Result.Form == step.FormJSON {
			return call.Result.JSON
		}
		return []byte(call.Result.BodyText)
	}
	t.Fatalf("the result is nowhere: %+v", red.Given)
	return nil
}

// Names that a step keeps of a JSON result are those that its texts say.
func TestNamesOfJSONAreDecoded(t *testing.T) {
	lines := strings.Repeat(`filler line of words\n`, 2000)
	given := `{"status": "ok", "log": "` + lines + `src/app/main.py\tsrc/app/db.py\nConnectionError\nCVE-2024-31337\n` + lines + `"}`
	got := reduce(nil, step.Call{Tool: "my:tool", Result: mustParse(t, given)})
	_, names, _ := strings.Cut(got.Evidence, "names: ")
	for _, want := range []string{"src/app/main.py", "src/app/db.py", "ConnectionError", "CVE-2024-31337"} {
		if !strings.Contains(" "+names+" ", " "+want+" ") {
			t.Errorf("%s is not among %q", want, names)
		}
	}
	for _, wrong := range []string{"nsrc", "tsrc", "nConnectionError", "nCVE", "nfiller"} {
		if strings.Contains(got.Evidence, wrong) {
			t.Errorf("%s is in %q", wrong, got.Evidence)
		}
	}
}
