package server_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// An import is undone by a filter with its id: what it has saved goes, and neither what was there
// before, nor what another import brought, nor what was changed since. An import that goes on
// under the same id is the same one, an export has none of it, and undoing twice is once.
//
// Y50
func TestImportIsUndone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from := servertest.Start(t, nil)
	for i := range 6 {
		MustSave(t, from, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: fmt.Sprint("r", i), Key: fmt.Sprint("k", i), Text: fmt.Sprintf("the %dth apple", i)})
	}
	lines := exported(t, from, agent)
	to := servertest.Start(t, nil)
	bring := func(id string, lines ...string) *loombridgev1.ImportResponse {
		stream, err := to.Transfer.Import(ctx)
		must(t, err)
		must(t, stream.Send(&loombridgev1.ImportRequest{AgentId: agent, ImportId: id, Lines: lines}))
		done, err := stream.CloseAndRecv()
		must(t, err)
		return done
	}
	MustSave(t, to, &loombridgev1.MemorySaveRequest{AgentId: agent, Id: "own", Text: "a pear of one's own"})
	other := bring("", lines[5]).GetImportId()
	for range 2 {
		bring("mine", lines[:3]...)
	}
	if done := bring("mine", lines...); done.GetSaved() != 2 || done.GetUnchanged() != 4 || done.GetImportId() != "mine" || other == "" {
		t.Errorf("imported were %v, before that %q", done, other)
	}
	if now := exported(t, to, agent); !slices.Contains(now, lines[3]) {
		t.Errorf("the export is %q", now)
	}
	_, err := to.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "r1"},
		Record: &loombridgev1.MemorySaveRequest{Text: "an apple that somebody corrected"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
	})
	must(t, err)
	_, err = to.Memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
		AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "k2"}, Record: &loombridgev1.MemorySaveRequest{Text: "an apple, anew"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
	})
	must(t, err)
	count := func(filter string, dry bool) int64 {
		done, err := to.Memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: agent, Filter: filter, Tiers: []int32{2, 3, 4}, DryRun: dry})
		must(t, err)
		return done.GetDeleted()
	}
	const undo = `import_id = "mine" AND import_changes = 0`
	if n := count(`import_id = "mine" AND import_changes > 0`, true); n != 2 {
		t.Errorf("changed are %d", n)
	}
	for _, want := range []int64{3, 0} {
		if n := count(undo, false); n != want {
			t.Errorf("undone are %d, want %d", n, want)
		}
	}
	left, err := textsOf(ctx, to, agent, memoryOf{})
	must(t, err)
	slices.Sort(left)
	want := []string{"a pear of one's own", "an apple that somebody corrected", "an apple, anew", "the 5th apple"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q", left)
	}
	kept := MustGetRecord(t, to, byID("r5"))
	if kept.GetImportId() != other || MustGetRecord(t, to, byID("own")).GetImportId() != "" {
		t.Errorf("the other import is %q, and %v", other, kept)
	}
	if done := bring("mine", lines[0]); done.GetSaved() != 1 || count(undo, false) != 1 {
		t.Errorf("again: %v", done)
	}
}
