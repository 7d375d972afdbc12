package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// A memory that is full of pinned records takes none more, by whatever way, and says what to do;
// it takes one as soon as that was done, and what takes no place at any time.
//
// Y48
func TestFullOfPinned(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir(), "--memory-limit", "3")
	ctx := t.Context()
	draft := func(text string, pinned bool) *loombridgev1.MemorySaveRequest {
		return &loombridgev1.MemorySaveRequest{Text: text, Key: text, Pinned: pinned}
	}
	save := func(key string, pinned, replace bool) error {
		_, err := p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "the text of " + key, Key: key, Pinned: pinned, Replace: replace, RequestId: fmt.Sprint(key, replace)})
		return err
	}
	count := func() int {
		t.Helper()
		list, err := p.memory().ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: "a"})
		must(t, err)
		n := 0
		for _, r := range list.GetRecords() {
			if !r.GetArchived() {
				n++
			}
		}
		return n
	}
	refused := func(what string, err error) {
		t.Helper()
		if reasonOf(err) != "QUOTA_EXCEEDED" || !strings.Contains(err.Error(), "unpin, archive or delete") {
			t.Errorf("%s: %v", what, err)
		}
		if n := count(); n != 3 {
			t.Errorf("behind %s there are %d records", what, n)
		}
	}
	must(t, save("first", false, false)) // goes into the archive for the next
	for i := range 3 {
		must(t, save(fmt.Sprint("pinned ", i), true, false))
	}
	refused("a save", save("one", false, false))
	refused("a pinned one", save("two", true, false))
	refused("one that would replace", save("three", false, true))
	_, err := p.memory().BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: "a", Records: []*loombridgev1.MemorySaveRequest{draft("four", false), draft("five", true)}})
	refused("a batch", err)
	importing, err := p.transfer().Import(ctx)
	must(t, err)
	must(t, importing.Send(&loombridgev1.ImportRequest{AgentId: "a", Lines: []string{
		`{"id":"x","text":"from afar","create_time":"2026-01-02T03:04:05Z","version":1,"kind":"fact","origin":"agent","tier":4,"importance":0.5}`,
	}}))
	_, err = importing.CloseAndRecv()
	refused("an import", err)
	_, err = p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Key{Key: "first"}, Archived: proto.Bool(false)})
	refused("one from the archive", err)

	must(t, save("pinned 1", true, false)) // the request of before
	must(t, save("pinned 2", true, true))  // a change
	_, err = p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
		AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Key{Key: "pinned 0"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"pinned"}}, Record: &loombridgev1.MemorySaveRequest{},
	})
	must(t, err)
	must(t, save("six", true, false))
	if n := count(); n > 3 {
		t.Errorf("there are %d records", n)
	}
	refused("one more", save("seven", false, false))
}
