package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// What an import prints undoes it, once; what was changed since stays, and is counted. An import
// that ends early says how to undo what it has saved.
//
// Y50
func TestRecordsUndo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	file := filepath.Join(dir, "own")
	must(t, os.WriteFile(file, []byte("Ann likes pears\nBob eats plums\n"), 0o600))
	save(t, p, "what was there")
	out, err := p.records(t, "import", "--agent", "a", "--user", "ann", file)
	must(t, err)
	_, id, found := strings.Cut(strings.TrimSpace(out), "records undo --agent a --user ann ")
	if !found {
		t.Fatalf("the import said %q", out)
	}
	listed, err := p.memory().ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "a", UserId: "ann", Filter: fmt.Sprintf("import_id = %q", id)})
	must(t, err)
	if len(listed.GetRecords()) != 2 {
		t.Fatalf("of the import are %v", listed)
	}
	_, err = p.memory().UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: "a", UserId: "ann", Name: &loombridgev1.UpdateRecordRequest_Id{Id: listed.GetRecords()[0].GetId()},
		Record: &loombridgev1.MemorySaveRequest{Text: "Ann likes apples"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
	})
	must(t, err)
	for _, want := range []string{"deleted 1 records", "deleted 0 records"} {
		out, err := p.records(t, "undo", "--agent", "a", "--user", "ann", id)
		if must(t, err); !strings.HasPrefix(out, want) || !strings.Contains(out, "1 were changed since and stay") {
			t.Errorf("got %q, want %q", out, want)
		}
	}
	must(t, os.WriteFile(file, []byte(`{"text":"Ann has moved"}`+"\n"+`{"no":"export","id":"x"}`), 0o600))
	if _, err := p.records(t, "import", "--agent", "a", file); err == nil || !strings.Contains(err.Error(), "records undo --agent a ") {
		t.Errorf("an import that ends early says %v", err)
	}
}

// Lines of somebody's own hand that come again, in one file or in another, are one record each; an
// import that there is none of is not undone, and an export of nothing says so.
func TestRecordsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	file := filepath.Join(dir, "own")
	must(t, os.WriteFile(file, []byte(`{"text":"hello"}`+"\n"+`{"text":"bye","key":"k"}`+"\nhello\n"), 0o600))
	for _, want := range []string{"imported 2 records; 1 were there, 0 ", "imported 0 records; 3 were there, 0 "} {
		if out, err := p.records(t, "import", "--agent", "a", file); err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%v: %q, want %q", err, out, want)
		}
	}
	must(t, os.WriteFile(file, []byte(`{"id":"mine","text":"an id of one's own"}`), 0o600))
	for _, want := range []string{"imported 1 records; 0 were there", "imported 0 records; 1 were there"} {
		if out, err := p.records(t, "import", "--agent", "a", file); err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%v: %q, want %q", err, out, want)
		}
	}
	must(t, os.WriteFile(file, []byte(`{"text":""}`), 0o600))
	if _, err := p.records(t, "import", "--agent", "a", file); err == nil || !strings.Contains(err.Error(), "text is empty") {
		t.Errorf("an empty text: %v", err)
	}
	if out, err := p.records(t, "undo", "--agent", "a", "nope"); status.Code(err) != codes.NotFound || out != "" {
		t.Errorf("undo of nothing: %v: %q", err, out)
	}
	for args, want := range map[string]string{
		"records export --agent typo":                     `agent "typo" is unknown, or has no records`,
		"records export --agent a --user typo":            `user "typo" is unknown, or has no records`,
		"records export --agent typo --out " + file + "2": `agent "typo" is unknown, or has no records`,
		"sessions export --agent typo":                    `agent "typo" is unknown, or has no sessions`,
		"records export --agent a":                        "",
	} {
		var out, said bytes.Buffer
		err := run(t.Context(), append(strings.Fields(args), "--addr", p.Address), noEnvironment, &out, &said)
		if err != nil || !strings.HasPrefix(said.String(), want) || want == "" && said.Len() > 0 {
			t.Errorf("%s: %v: %q", args, err, said.String())
		}
	}
}
