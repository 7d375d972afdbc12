package server_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	"github.com/loom-bridge/loom-bridge/memory"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/compose"
)

const (
	reinforce  = loombridgev1.Duplicates_DUPLICATES_REINFORCE
	saved      = loombridgev1.SaveOutcome_SAVE_OUTCOME_SAVED
	reinforced = loombridgev1.SaveOutcome_SAVE_OUTCOME_REINFORCED
)

// listed are all records of the agent.
func listed(tb testing.TB, s *servertest.Server) []*loombridgev1.Record {
	tb.Helper()
	got, err := s.Memory.ListRecords(tb.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, PageSize: 500})
	must(tb, err)
	return got.GetRecords()
}

// A save that repeats a record reinforces it, and one that differs in what it means or in
// anything that its caller gave is saved. The first of each pair is there when the second
// comes.
//
// Y08
func TestRepeatsReinforce(t *testing.T) {
	s := servertest.Start(t, nil)
	at := timestamppb.New(s.Clock.Now())
	type request = loombridgev1.MemorySaveRequest
	for i, tt := range []struct {
		name          string
		first, second *request
		repeats       bool
	}{
		{"the same text", &request{Text: "Ann owns %d hamsters"}, &request{Text: "Ann owns %d hamsters"}, true},
		{"other case and blanks", &request{Text: "Ann owns %d hamsters."}, &request{Text: "ann  owns %d hamsters"}, true},
		{"other words that say nothing", &request{Text: "Ann doesn't want the %d hamsters"}, &request{Text: "Note: Ann does not want the %d hamsters!"}, true},
		{"the same fields", &request{Text: "Ann owns %d cats", Tags: []string{"b", "a"}, Author: "bob", EventTime: at, Kind: "belief"}, &request{Text: "Ann owns %d cats", Tags: []string{"a", "b"}, Author: "bob", EventTime: at, Kind: "belief"}, true},
		{"another session without an author", &request{Text: "Ann has %d keys", SessionId: "s1"}, &request{Text: "Ann has %d keys", SessionId: "s2"}, true},
		{"another number", &request{Text: "Bob has %d cats and 3 dogs"}, &request{Text: "Bob has %d cats and 4 dogs"}, false},
		{"another name", &request{Text: "Ann met Bob at gate %d"}, &request{Text: "Ann met Bill at gate %d"}, false},
		{"another order", &request{Text: "Ann met Bob at desk %d"}, &request{Text: "Bob met Ann at desk %d"}, false},
		{"a denial", &request{Text: "Room %d is free for Ann"}, &request{Text: "Room %d is not free for Ann"}, false},
		{"a question", &request{Text: "Room %d is free for Bob"}, &request{Text: "Room %d is free for Bob?"}, false},
		{"another kind", &request{Text: "Ann drinks %d teas"}, &request{Text: "Ann drinks %d teas", Kind: "belief"}, false},
		{"another author", &request{Text: "I drink %d teas", Author: "ann"}, &request{Text: "I drink %d teas", Author: "bob"}, false},
		{"a turn of another session", &request{Text: "I need %d teas", Author: "ann", SessionId: "s1"}, &request{Text: "I need %d teas", Author: "ann", SessionId: "s2"}, false},
		{"another moment", &request{Text: "Ann ate %d pears"}, &request{Text: "Ann ate %d pears", EventTime: at}, false},
		{"another tag", &request{Text: "Ann sold %d pears", Tags: []string{"a"}}, &request{Text: "Ann sold %d pears", Tags: []string{"b"}}, false},
		{"other metadata", &request{Text: "Ann lost %d pears"}, &request{Text: "Ann lost %d pears", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"a":1}`}}, false},
		{"an id", &request{Text: "Ann hid %d pears"}, &request{Text: "Ann hid %d pears", Id: "mine"}, false},
		{"a key", &request{Text: "Ann dug %d holes"}, &request{Text: "Ann dug %d holes", Key: "holes"}, false},
		{"a record with a key", &request{Text: "Ann dug %d wells", Key: "wells"}, &request{Text: "Ann dug %d wells"}, false},
		{"another origin", &request{Text: "Ann won %d prizes"}, &request{Text: "Ann won %d prizes", Origin: loombridgev1.Origin_ORIGIN_WEB}, false},
		{"a shorter life", &request{Text: "Ann runs %d miles"}, &request{Text: "Ann runs %d miles", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Hour)}}, false},
		{"courtesy", &request{Text: "ok, thank you"}, &request{Text: "ok, thank you"}, false},
		{"what happens", &request{Text: "Deployed service %d again", Kind: "event"}, &request{Text: "Deployed service %d again", Kind: "event"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []*request{tt.first, tt.second} {
				if r.Text != "ok, thank you" {
					r.Text = fmt.Sprintf(r.Text, 100+i)
				}
				r.Duplicates = reinforce
			}
			first, before := remember(t, s, tt.first), len(listed(t, s))
			if first.GetOutcome() != saved {
				t.Fatalf("the first was %s", first.GetOutcome())
			}
			second := remember(t, s, tt.second)
			if got := second.GetOutcome() == reinforced; got != tt.repeats {
				t.Errorf("the second was %s", second.GetOutcome())
			}
			if added := len(listed(t, s)) - before; (added == 0) != tt.repeats {
				t.Errorf("%d records were added", added)
			}
			if tt.repeats && (second.GetId() != first.GetId() || second.GetSimilarity() < 0.3 || second.GetRepeats() != 1) {
				t.Errorf("answered with %v", second)
			}
		})
	}
}

// What a repeat leaves behind: counts, a time, a bounded gain of importance, and no version.
// The same request again is answered as before and counts nothing.
//
// Y08
func TestRepeatsAreCounted(t *testing.T) {
	s := servertest.Start(t, nil)
	save := func(id string) *loombridgev1.MemorySaveResponse {
		return remember(t, s, &loombridgev1.MemorySaveRequest{Text: "The desk closes at 17:30", RequestId: id, Duplicates: reinforce})
	}
	first := save("")
	for i := range 20 {
		s.Clock.Advance(time.Hour)
		id := fmt.Sprint("r", i)
		once, again := save(id), save(id)
		if !proto.Equal(once, again) || once.GetRepeats() != int64(i+1) || once.GetId() != first.GetId() {
			t.Fatalf("answered %v, and again %v", once, again)
		}
	}
	all := listed(t, s)
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	r := all[0]
	if r.GetRepeats() != 20 || !r.GetLastRepeatTime().AsTime().Equal(s.Clock.Now()) || r.GetVersion() != 1 || r.GetImportance() < 0.69 || r.GetImportance() > 0.71 {
		t.Errorf("got %v", r)
	}
	got, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "when does the desk close"})
	must(t, err)
	if len(got.GetHits()) != 1 || got.GetHits()[0].GetRecord().GetRepeats() != 20 {
		t.Errorf("found %v", got.GetHits())
	}
}

// Without being told so the server keeps every record, and a batch does whatever the server
// is set to.
//
// Y08
func TestDuplicatesAreKeptByDefault(t *testing.T) {
	for name, reinforces := range map[string]bool{"keep": false, "reinforce": true} {
		t.Run(name, func(t *testing.T) {
			o := servertest.Options{}
			if reinforces {
				o.Domain = compose.Options{Memory: memory.Options{Duplicates: memory.ReinforceDuplicates}}
			}
			s := servertest.Start(t, &o)
			text := "Ann lives in Bern"
			for range 3 {
				remember(t, s, &loombridgev1.MemorySaveRequest{Text: text})
			}
			want := 3
			if reinforces {
				want = 1
			}
			if got := len(listed(t, s)); got != want {
				t.Errorf("%d records after three saves, want %d", got, want)
			}
			remember(t, s, &loombridgev1.MemorySaveRequest{Text: text, Duplicates: loombridgev1.Duplicates_DUPLICATES_KEEP})
			batch := &loombridgev1.BatchSaveRequest{AgentId: agent, Records: []*loombridgev1.MemorySaveRequest{{Text: text}, {Text: text}}}
			_, err := s.Memory.BatchSave(t.Context(), batch)
			must(t, err)
			if got := len(listed(t, s)); got != want+3 {
				t.Errorf("%d records after a batch, want %d", got, want+3)
			}
		})
	}
}

// A batch that says so reinforces what was there and what stands before in itself; each
// answer names the record that it ended in.
//
// Y08
func TestBatchReinforces(t *testing.T) {
	s := servertest.Start(t, nil)
	old := remember(t, s, &loombridgev1.MemorySaveRequest{Text: "Ann lives in Bern", Duplicates: reinforce})
	batch := &loombridgev1.BatchSaveRequest{AgentId: agent, Duplicates: reinforce, RequestId: "b", Records: []*loombridgev1.MemorySaveRequest{
		{Text: "Bob lives in Rome"},
		{Text: "ann lives in Bern."},
		{Text: "Bob lives in Rome!"},
		{Text: "Bob lives in Oslo"},
		{Text: "Ann lives in Bern"},
		{Text: "bob lives in rome", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Hour)}},
		{Text: "bob lives in Rome", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(2 * time.Hour)}},
	}}
	got, err := s.Memory.BatchSave(t.Context(), batch)
	must(t, err)
	again, err := s.Memory.BatchSave(t.Context(), batch)
	must(t, err)
	if !proto.Equal(got, again) {
		t.Errorf("answered %v, and again %v", got, again)
	}
	_, err = s.Memory.BatchSave(t.Context(), &loombridgev1.BatchSaveRequest{AgentId: "importer", Records: []*loombridgev1.MemorySaveRequest{{Text: "Bob lives in Rome"}}})
	must(t, err)
	if got := remember(t, s, &loombridgev1.MemorySaveRequest{AgentId: "importer", Text: "Bob lives in Rome", Duplicates: reinforce}); got.GetOutcome() != saved {
		t.Errorf("what a batch kept is repeated: %v", got)
	}
	remember(t, s, &loombridgev1.MemorySaveRequest{AgentId: "writer", Text: "Bob lives in Rome"})
	if got := remember(t, s, &loombridgev1.MemorySaveRequest{AgentId: "writer", Text: "Bob lives in Rome", Duplicates: reinforce}); got.GetOutcome() != saved {
		t.Errorf("what a save kept is repeated: %v", got)
	}
	a := got.GetSaved()
	for i, want := range []struct {
		outcome loombridgev1.SaveOutcome
		id      string
	}{{saved, a[0].GetId()}, {reinforced, old.GetId()}, {reinforced, a[0].GetId()}, {saved, a[3].GetId()}, {reinforced, old.GetId()}, {saved, a[5].GetId()}, {reinforced, a[5].GetId()}} {
		if a[i].GetOutcome() != want.outcome || a[i].GetId() != want.id {
			t.Errorf("record %d: %v", i, a[i])
		}
	}
	all := listed(t, s)
	if len(all) != 4 || all[0].GetRepeats() != 2 || all[1].GetRepeats() != 1 || all[3].GetRepeats() != 1 {
		t.Fatalf("records are %v", all)
	}
	if got, want := all[3].GetExpireTime().AsTime(), s.Clock.Now().Add(2*time.Hour); !got.Equal(want) {
		t.Errorf("it expires at %s, want %s", got, want)
	}
}

// What was recalled and is saved again reinforces the record that it derives from, also in
// part and without its fields; what adds something is saved.
//
// Y09
func TestEchoReinforces(t *testing.T) {
	s := servertest.Start(t, nil)
	source := remember(t, s, &loombridgev1.MemorySaveRequest{
		Text: "Ann lives in Bern. She keeps two cats in the attic.", Author: "ann", SessionId: "s1", Tags: []string{"home"}, Origin: loombridgev1.Origin_ORIGIN_USER,
		EventTime: timestamppb.New(s.Clock.Now()),
	})
	for text, want := range map[string]loombridgev1.SaveOutcome{
		"As I recall, Ann lives in Bern. She keeps two cats in the attic.": reinforced,
		"She keeps two cats in the attic.":                                 reinforced,
		"She keeps three cats in the attic.":                               saved,
		"Ann lives in Bern. She keeps two cats in the attic. So buy food.": saved,
	} {
		got := remember(t, s, &loombridgev1.MemorySaveRequest{Text: text, SessionId: "s2", DerivedFrom: []string{source.GetId()}, Duplicates: reinforce})
		if got.GetOutcome() != want || want == reinforced && got.GetId() != source.GetId() {
			t.Errorf("%q: %v", text, got)
		}
	}
	got := remember(t, s, &loombridgev1.MemorySaveRequest{
		Text: "She keeps two cats in the attic.", Origin: loombridgev1.Origin_ORIGIN_WEB, DerivedFrom: []string{source.GetId()}, Duplicates: reinforce,
	})
	if got.GetOutcome() != saved {
		t.Errorf("a page of the web reinforced what a person said: %v", got)
	}
}

// A record that tells of today is repeated within minutes and saved anew later; so is one
// that was superseded meanwhile, at once.
//
// Y08
func TestRepeatsOfWhatIsOver(t *testing.T) {
	s := servertest.Start(t, nil)
	save := func(text, supersedes string) loombridgev1.SaveOutcome {
		return remember(t, s, &loombridgev1.MemorySaveRequest{Text: text, Supersedes: supersedes, Duplicates: reinforce}).GetOutcome()
	}
	for i, want := range []loombridgev1.SaveOutcome{saved, reinforced, saved} {
		if got := save("The sea is calm today", ""); got != want {
			t.Errorf("save %d: %s", i, got)
		}
		s.Clock.Advance(time.Duration(i*30+1) * time.Minute)
	}
	first := remember(t, s, &loombridgev1.MemorySaveRequest{Text: "Ann works in Rome"})
	save("Ann works in Oslo", first.GetId())
	if got := save("Ann works in Rome", ""); got != saved {
		t.Errorf("Ann is back in Rome: %s", got)
	}
}

// Of many that save the same at once one adds a record and all others are counted.
//
// Y08
func TestRepeatsAtOnce(t *testing.T) {
	s := servertest.Start(t, nil)
	const callers = 32
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			_, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "The desk opens at nine", Duplicates: reinforce})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if all := listed(t, s); len(all) != 1 || all[0].GetRepeats() != callers-1 {
		t.Errorf("records are %v", all)
	}
}

// A record in the archive is read and listed, and found only where the archive is asked for;
// out of it, it is found again. The receipt says what lies there.
//
// Y10
func TestArchive(t *testing.T) {
	s := servertest.Start(t, nil)
	id := remember(t, s, &loombridgev1.MemorySaveRequest{Text: "The pump is in the cellar", Key: "pump"}).GetId()
	find := func(archive bool) (int, *loombridgev1.QueryReceipt) {
		got, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "pump", IncludeArchived: archive})
		must(t, err)
		return len(got.GetHits()), got.GetReceipt()
	}
	archive := func(restore bool) *loombridgev1.Record {
		got, err := s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{
			AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: "pump"}, ExpectedVersion: proto.Int64(map[bool]int64{false: 1, true: 2}[restore]), Archived: proto.Bool(!restore),
		})
		must(t, err)
		return got
	}
	if r := archive(false); r.GetId() != id || !r.GetArchived() || !r.GetArchiveTime().AsTime().Equal(s.Clock.Now()) || r.GetVersion() != 2 {
		t.Errorf("archived %v", r)
	}
	if n, receipt := find(false); n != 0 || receipt.GetLeftOut()["archived"] != 1 || receipt.GetEmptyReason() != loombridgev1.EmptyReason_EMPTY_REASON_ALL_EXCLUDED {
		t.Errorf("found %d, %v", n, receipt)
	}
	if n, _ := find(true); n != 1 {
		t.Errorf("found %d in the archive", n)
	}
	got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
	must(t, err)
	if !got.GetArchived() {
		t.Errorf("read %v", got)
	}
	remember(t, s, &loombridgev1.MemorySaveRequest{Text: "The hose is in the attic"})
	for filter, want := range map[string]int{"": 2, "archived = true": 1, "archived = false": 1} {
		got, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, Filter: filter})
		must(t, err)
		if len(got.GetRecords()) != want {
			t.Errorf("%q lists %d records, want %d", filter, len(got.GetRecords()), want)
		}
	}
	stats, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
	must(t, err)
	if stats.GetStats().GetArchived() != 1 || stats.GetStats().GetRecords() != 2 {
		t.Errorf("counted %v", stats)
	}
	if r := archive(true); r.GetArchived() || r.GetArchiveTime() != nil {
		t.Errorf("restored %v", r)
	}
	if n, _ := find(false); n != 1 {
		t.Errorf("found %d out of the archive", n)
	}
	_, err = s.Memory.UpdateRecord(t.Context(), &loombridgev1.UpdateRecordRequest{AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "none"}, Archived: proto.Bool(true)})
	MustFail(t, err, codes.NotFound, "RECORD_NOT_FOUND")
}

// limited starts a server whose memories have limits.
func limited(t *testing.T, records, archived int) *servertest.Server {
	return servertest.Start(t, &servertest.Options{Domain: compose.Options{Memory: memory.Options{MaxRecords: records, MaxArchived: archived}}})
}

// A memory that is full archives what is worth least and says so: what was replaced, then
// what is old, of little weight and never repeated. What is pinned or was just saved stays,
// and what left is read, listed and found in the archive.
//
// Y11
func TestMemoryLimit(t *testing.T) {
	s := limited(t, 10, 0)
	save := func(r *loombridgev1.MemorySaveRequest) *loombridgev1.MemorySaveResponse {
		s.Clock.Advance(time.Hour)
		return remember(t, s, r)
	}
	weight := func(x float64) *float64 { return &x }
	pinned := save(&loombridgev1.MemorySaveRequest{Text: "pinned thing number 1", Importance: weight(0), Pinned: true}).GetId()
	weighty := save(&loombridgev1.MemorySaveRequest{Text: "weighty thing number 2", Importance: weight(1)}).GetId()
	old := save(&loombridgev1.MemorySaveRequest{Text: "old thing number 3"}).GetId()
	repeated := save(&loombridgev1.MemorySaveRequest{Text: "repeated thing number 4", Duplicates: reinforce}).GetId()
	for range 8 {
		save(&loombridgev1.MemorySaveRequest{Text: "repeated thing number 4", Duplicates: reinforce})
	}
	light := save(&loombridgev1.MemorySaveRequest{Text: "light thing number 5", Importance: weight(0), Duplicates: reinforce}).GetId()
	replaced := save(&loombridgev1.MemorySaveRequest{Text: "replaced thing number 6", Importance: weight(1)}).GetId()
	save(&loombridgev1.MemorySaveRequest{Text: "thing number 7", Supersedes: replaced})
	for i := range 3 {
		if got := save(&loombridgev1.MemorySaveRequest{Text: fmt.Sprint("plain thing number ", 8+i)}); len(got.GetArchivedIds()) != 0 {
			t.Fatalf("%v went before the memory was full", got.GetArchivedIds())
		}
	}
	var left []string
	for i := range 3 {
		got := save(&loombridgev1.MemorySaveRequest{Text: fmt.Sprint("late thing number ", 11+i), Importance: weight(0), RequestId: fmt.Sprint(i)})
		left = append(left, got.GetArchivedIds()...)
		if again := remember(t, s, &loombridgev1.MemorySaveRequest{Text: fmt.Sprint("late thing number ", 11+i), Importance: weight(0), RequestId: fmt.Sprint(i)}); again.GetId() != got.GetId() {
			t.Errorf("the same request saved %v", again)
		}
	}
	if len(left) != 3 || left[0] != replaced || left[1] != light {
		t.Errorf("%v left; the replaced one is %s, the light one %s", left, replaced, light)
	}
	for _, id := range []string{pinned, weighty, repeated} {
		got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
		must(t, err)
		if got.GetArchived() {
			t.Errorf("%q left; old is %s", got.GetText(), old)
		}
	}
	stats, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
	must(t, err)
	if stats.GetStats().GetRecords() != 13 || stats.GetStats().GetArchived() != 3 {
		t.Errorf("counted %v", stats)
	}
	for _, id := range left {
		got, err := s.Bridge.MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: agent, Query: "thing", Limit: 100, IncludeArchived: true, Filter: fmt.Sprintf("id = %q AND archived = true", id)})
		must(t, err)
		if want := map[bool]int{true: 0, false: 1}[id == replaced]; len(got.GetHits()) != want {
			t.Errorf("%s is found %d times in the archive, want %d", id, len(got.GetHits()), want)
		}
	}
	// One that comes again comes back.
	again := save(&loombridgev1.MemorySaveRequest{Text: "light thing number 5", Importance: weight(0.9), Duplicates: reinforce})
	if again.GetId() != light || again.GetOutcome() != reinforced {
		t.Errorf("it came back as %v", again)
	}
	got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: light}})
	must(t, err)
	if got.GetArchived() || got.GetImportance() < 0.9 {
		t.Errorf("it is %v", got)
	}
}

// Where a limit is set on a memory that has far more, no save waits until it is reached: each
// makes room for what it saves, the background does the rest, and answers tell all that left.
//
// Y11
func TestMemoryLimitComesLater(t *testing.T) {
	for _, kept := range []int{0, 150} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			t.Parallel()
			engine := MustEngine(t)
			s := servertest.Start(t, &servertest.Options{Engine: engine})
			const before, limit = 1000, 100
			batch := &loombridgev1.BatchSaveRequest{AgentId: agent}
			for i := range before {
				batch.Records = append(batch.Records, &loombridgev1.MemorySaveRequest{Text: fmt.Sprint("thing number ", i)})
			}
			_, err := s.Memory.BatchSave(t.Context(), batch)
			must(t, err)
			s = servertest.Start(t, &servertest.Options{Engine: engine, Domain: compose.Options{Memory: memory.Options{MaxRecords: limit, MaxArchived: kept}}})
			told, deleted, live, archived := make(map[string]bool), int64(0), int64(before), int64(0)
			for i := 0; live > limit || archived > int64(len(told)) || kept > 0 && archived > int64(kept); i++ {
				was := live
				got := remember(t, s, &loombridgev1.MemorySaveRequest{Text: fmt.Sprint("late thing number ", i)})
				if n := len(got.GetArchivedIds()); i == 0 && n != 32 {
					t.Errorf("the first save told %d archived and %d deleted", n, got.GetDeletedCount())
				}
				for _, id := range got.GetArchivedIds() {
					if told[id] {
						t.Errorf("%s is told twice", id)
					}
					told[id] = true
				}
				deleted += got.GetDeletedCount()
				stats, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
				must(t, err)
				archived, live = stats.GetStats().GetArchived(), stats.GetStats().GetRecords()-stats.GetStats().GetArchived()
				if live > was && live > limit {
					t.Fatalf("a save made %d records of %d", live, was)
				}
			}
			if live < limit*9/10 || kept == 0 && deleted != 0 {
				t.Errorf("%d records, %d deleted", live, deleted)
			}
			if kept > 0 && (deleted == 0 || archived > int64(kept)) {
				t.Errorf("%d in the archive, %d deleted", archived, deleted)
			}
			if kept > 0 {
				return
			}
			for id := range told {
				got, err := s.Memory.GetRecord(t.Context(), &loombridgev1.GetRecordRequest{AgentId: agent, Name: &loombridgev1.GetRecordRequest_Id{Id: id}})
				must(t, err)
				if !got.GetArchived() {
					t.Fatalf("told as archived: %v", got)
				}
			}
		})
	}
}

// The limit holds also for batches and for many that save at once, and the archive has a
// limit of its own, the only thing that deletes.
//
// Y11
func TestMemoryLimitHolds(t *testing.T) {
	s := limited(t, 100, 50)
	batch := &loombridgev1.BatchSaveRequest{AgentId: agent}
	for i := range 130 {
		batch.Records = append(batch.Records, &loombridgev1.MemorySaveRequest{Text: fmt.Sprint("thing number ", i)})
	}
	got, err := s.Memory.BatchSave(t.Context(), batch)
	must(t, err)
	if n := len(got.GetArchivedIds()); n < 30 || n > 32 {
		t.Errorf("%d of a batch left at once", n)
	}
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for i := range 20 {
				if _, err := s.Bridge.MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: agent, Text: fmt.Sprintf("matter %d of %d", i, worker)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	stats, err := s.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, StatsOnly: true})
	must(t, err)
	if live := stats.GetStats().GetRecords() - stats.GetStats().GetArchived(); live > 100 || live < 90 || stats.GetStats().GetArchived() > 50 || stats.GetStats().GetArchived() < 30 {
		t.Errorf("counted %v", stats)
	}
}

// The same import made twice into a memory with limits is one made once: nothing that left for
// want of room comes back and pushes out others, and what stays is there as it came.
//
// Y07 Y11
func TestImportTwiceIntoAFullMemoryIsOnce(t *testing.T) {
	from, to := servertest.Start(t, nil), limited(t, 20, 10)
	before := ""
	for i := range 100 {
		supersedes := ""
		if i%7 == 3 {
			supersedes = before
		}
		weight := float64(i*37%100) / 100
		before = MustSave(t, from, &loombridgev1.MemorySaveRequest{AgentId: agent, Text: fmt.Sprint("thing number ", i, " of many"), Importance: &weight, Supersedes: supersedes}).GetId()
		from.Clock.Advance(time.Minute)
	}
	lines := MustExport(t, from)
	alive := func() []string {
		var ids []string
		page, err := to.Memory.ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: agent, PageSize: 500})
		must(t, err)
		for _, r := range page.GetRecords() {
			ids = append(ids, fmt.Sprint(r.GetId(), r.GetArchived()))
		}
		return ids
	}
	first := MustImport(t, to, lines...)
	if first.GetSaved() != 100 || first.GetDeletedCount() == 0 {
		t.Fatalf("imported %v", first)
	}
	there := alive()
	for range 3 {
		again := MustImport(t, to, lines...)
		if again.GetUnchanged() != 100 || again.GetSaved() != 0 || again.GetDeletedCount() != 0 {
			t.Errorf("imported again %v", again)
		}
		if now := alive(); !slices.Equal(there, now) {
			t.Errorf("%d are alive, before %d others", len(now), len(there))
		}
	}
	// Where there is room again, they come.
	_, err := to.Memory.DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: agent, Filter: "archived = true"})
	must(t, err)
	if again := MustImport(t, to, lines...); again.GetSaved() == 0 {
		t.Errorf("imported with room %v", again)
	}
}
