package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// records runs the command on a server, and returns what it said.
func (p *process) records(tb testing.TB, args ...string) (string, error) {
	tb.Helper()
	var output, console bytes.Buffer
	err := run(tb.Context(), append([]string{"records", args[0], "--addr", p.Address}, args[1:]...), noEnvironment, &output, &console)
	return output.String(), err
}

// furnish gives agent a a memory with everything that a record can have.
func (p *process) furnish(tb testing.TB, user string) {
	tb.Helper()
	save := func(r *loombridgev1.MemorySaveRequest) string {
		r.AgentId, r.UserId = "a", user
		got, err := p.bridge().MemorySave(tb.Context(), r)
		must(tb, err)
		return got.GetId()
	}
	for i := range 40 {
		save(&loombridgev1.MemorySaveRequest{
			Text: fmt.Sprintf("note %d <of> \"the\" garden\n\u2028 Ärger", i), SessionId: fmt.Sprintf("s%d", i%3), Tags: []string{"b", "a"}, Author: "Ann",
			MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"n": %d, "big": 12345678901234567890, "a": ["<&>"]}`, i)},
		})
	}
	old := save(&loombridgev1.MemorySaveRequest{Text: "the rose is red", Key: "rose", Importance: proto.Float64(.9), Pinned: true})
	save(&loombridgev1.MemorySaveRequest{Text: "the rose is white", Key: "rose", Supersedes: old, Origin: loombridgev1.Origin_ORIGIN_TOOL})
	last := save(&loombridgev1.MemorySaveRequest{Text: "roses need water", DerivedFrom: []string{old}, Expiry: &loombridgev1.MemorySaveRequest_SlidingTtl{SlidingTtl: durationpb.New(90 * time.Hour)}})
	save(&loombridgev1.MemorySaveRequest{Text: "with a vector", Id: "../odd id ü", Embedding: []float32{.1, -3.25e-7, 1e20}, EmbeddingSpace: "m/3"})
	var relations []*loombridgev1.Relation
	for i, id := range []string{"../odd id ü", old} { // both ways, in a circle, and two of a pair
		relations = append(relations, &loombridgev1.Relation{FromId: id, Name: "part_of", ToId: last}, &loombridgev1.Relation{FromId: last, Name: "has", ToId: id}, &loombridgev1.Relation{FromId: id, Name: fmt.Sprintf("n.%d", i), ToId: last})
	}
	past := []*loombridgev1.Relation{{FromId: old, Name: "was", ToId: last}, {FromId: last, Name: "had", ToId: old}} // they end
	_, err := p.memory().RelateRecords(tb.Context(), &loombridgev1.RelateRecordsRequest{AgentId: "a", UserId: user, Relations: append(relations, past...)})
	must(tb, err)
	_, err = p.memory().UnrelateRecords(tb.Context(), &loombridgev1.UnrelateRecordsRequest{AgentId: "a", UserId: user, Relations: past})
	must(tb, err)
	for i := range 5 {
		save(&loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("the gate is %d m wide", i), Key: "gate", Replace: true})
	}
	_, err = p.memory().UpdateRecord(tb.Context(), &loombridgev1.UpdateRecordRequest{
		AgentId: "a", UserId: user, Name: &loombridgev1.UpdateRecordRequest_Id{Id: "../odd id ü"}, Record: &loombridgev1.MemorySaveRequest{Tags: []string{"changed"}}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"tags"}},
	})
	must(tb, err)
}

// What was exported and imported elsewhere is the same export there, byte for byte, also
// after a restart, and the memory answers as the first one does: by words, by vector, by
// key, by version. A second import changes nothing.
//
// Y07
func TestRecordsExportAndImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := MustRun(t, t.TempDir()), MustRun(t, dir)
	for _, user := range []string{"", "ann"} {
		from.furnish(t, user)
		owner := []string{"--agent", "a", "--user", user}
		first, second := filepath.Join(dir, "first"+user), filepath.Join(dir, "second"+user)
		said, err := from.records(t, append([]string{"export", "--out", first}, owner...)...)
		if must(t, err); said != "exported 45 records to "+first+"\n" {
			t.Errorf("export said %q", said)
		}
		for i, want := range []string{"imported 45 records; 0 were there", "imported 0 records; 45 were there"} {
			said, err := to.records(t, append([]string{"import", first}, owner...)...)
			if must(t, err); !strings.HasPrefix(said, want) {
				t.Errorf("import %d said %q", i, said)
			}
		}
		must(t, to.Stop())
		to = MustRun(t, dir)
		_, err = to.records(t, append([]string{"export", "--out", second}, owner...)...)
		must(t, err)
		if a, b := string(mustRead(t, first)), string(mustRead(t, second)); a != b || strings.Count(a, `"end":`) != 2 {
			t.Errorf("of %q: exported\n%.2000s\nand after the import\n%.2000s", user, a, b)
		}
		for _, ask := range []*loombridgev1.MemoryQueryRequest{
			{Query: "the white rose in the garden", Limit: 10},
			{Query: "how wide is the gate"},
			{Mode: loombridgev1.QueryMode_QUERY_MODE_VECTOR, Embedding: []float32{.1, 0, 1e20}, EmbeddingSpace: "m/3"},
		} {
			ask.AgentId, ask.UserId = "a", user
			want, err := from.bridge().MemoryQuery(t.Context(), ask)
			must(t, err)
			got, err := to.bridge().MemoryQuery(t.Context(), ask)
			must(t, err)
			if len(got.GetHits()) == 0 || len(got.GetHits()) != len(want.GetHits()) {
				t.Fatalf("%q: %d hits, %d before", ask.GetQuery(), len(got.GetHits()), len(want.GetHits()))
			}
			for i, hit := range got.GetHits() {
				if other := want.GetHits()[i]; hit.GetRecord().GetText() != other.GetRecord().GetText() {
					t.Errorf("%q: hit %d is %q, %q before", ask.GetQuery(), i, hit.GetRecord().GetText(), other.GetRecord().GetText())
				}
			}
		}
		related, err := to.memory().ListRelations(t.Context(), &loombridgev1.ListRelationsRequest{AgentId: "a", UserId: user, Name: &loombridgev1.ListRelationsRequest_Id{Id: "../odd id ü"}})
		must(t, err)
		if n := len(related.GetRelations()); n != 3 {
			t.Errorf("of %q: %d relations after the import, want 3", user, n)
		}
		page, err := to.memory().ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "a", UserId: user, Name: &loombridgev1.ListRecordsRequest_Key{Key: "gate"}})
		must(t, err)
		if v := page.GetRecords(); len(v) != 5 || v[4].GetText() != "the gate is 0 m wide" {
			t.Errorf("versions: %v", v)
		}
	}
	must(t, to.Stop())
	said, err := checkStore(t, filepath.Join(dir, "store"))
	if err != nil {
		t.Errorf("check: %v\n%s", err, said)
	}
}

// checkStore reads back the store of a server that was stopped.
func checkStore(tb testing.TB, dir string) (string, error) {
	tb.Helper()
	var output, console bytes.Buffer
	err := run(tb.Context(), []string{"check", "--data-dir", dir}, noEnvironment, &output, &console)
	return output.String() + console.String(), err
}

// What somebody wrote by hand is taken, too, also behind a byte order mark: a text to a line, or
// objects with one; the same line again is the same record, with or without --skip-existing.
func TestRecordsImportOfOnesOwnLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	file := filepath.Join(dir, "own")
	must(t, os.WriteFile(file, []byte("\ufeff{\"text\":\"Ann likes pears\"}\nBob eats plums\n\n"), 0o600))
	for _, c := range []struct{ flag, want string }{
		{"--skip-existing=false", "imported 2 records; 0 were there, 0 were"}, {"--skip-existing=false", "imported 0 records; 2 were there, 0 were"}, {"--skip-existing", "imported 0 records; 2 were there, 0 were"},
	} {
		out, err := p.records(t, "import", "--agent", "own", c.flag, file)
		if must(t, err); !strings.Contains(out, c.want) {
			t.Errorf("got %q, want %q", out, c.want)
		}
	}
}

// A line that can't be taken is named; what a memory has is changed by none.
func TestRecordsImportRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	p.furnish(t, "")
	file, other := filepath.Join(dir, "all"), filepath.Join(dir, "other")
	_, err := p.records(t, "export", "--agent", "a", "--out", file)
	must(t, err)
	text := string(mustRead(t, file))
	for name, c := range map[string]struct{ text, problem string }{
		"cut in the middle": {text[:len(text)-200], "unexpected EOF"},
		"not an export":     {`{"no":"export"}`, "line 1"},
		"not UTF-8":         {strings.Replace(text, "roses", "ro\xffes", 1), "is no text in UTF-8"},
		"a newline lost":    {strings.Replace(text, "\n", "", 1), "line 1"},
		"zeros at the end":  {text + strings.Repeat("\x00", 512), "line 51 is no text in UTF-8"},
		"a bit of a name":   {strings.Replace(text, `"version":`, `"wersion":`, 1), "line 1"},
		"a quote lost":      {strings.Replace(text, `"kind":"`, `"kind":`, 1), "line 1"},
		"another content":   {strings.ReplaceAll(text, "roses need water", "roses need wine"), "line 43"},
		"the last version":  {`{"id":"last","version":9223372036854775807,"text":"a","kind":"fact","create_time":"2026-01-02T03:04:05Z","importance":0.5,"origin":"user","tier":4}`, "version is not from 1 to"},
		"too many repeats":  {`{"id":"last","version":1,"repeats":9223372036854775807,"text":"a","kind":"fact","create_time":"2026-01-02T03:04:05Z","importance":0.5,"origin":"user","tier":4}`, "repeats is not from 0 to"},
		"without an id":     {`{"id":"","version":1,"text":"a","kind":"fact","create_time":"2026-01-02T03:04:05Z","importance":0.5,"origin":"user","tier":4}`, "id is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(other, []byte(c.text), 0o600))
			_, err := p.records(t, "import", "--agent", "a", other)
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %q", err, c.problem)
			}
			again := filepath.Join(dir, "again")
			_, err = p.records(t, "export", "--agent", "a", "--out", again)
			if must(t, err); string(mustRead(t, again)) != text {
				t.Error("the memory has changed")
			}
		})
	}
	must(t, os.WriteFile(other, []byte(strings.ReplaceAll(text, "roses need water", "roses need wine")), 0o600))
	said, err := p.records(t, "import", "--skip-existing", "--agent", "a", other)
	if must(t, err); said != "imported 0 records; 44 were there, 1 were there as something else, 0 had expired\n" {
		t.Errorf("with --skip-existing: %q", said)
	}
	if _, err := p.records(t, "export", "--agent", "a", "--out", filepath.Join(dir, "no", "file")); err == nil {
		t.Error("exported into a folder that is not there")
	}
}

// A command says that no server answers, and does not wait for one for ever.
func TestCommandsNeedServer(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"records", "export", "--agent", "a"}, {"sessions", "export", "--agent", "a"}, {"scopes"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel() // each waits a while for a server
			_, err := loomCommand(t, append(args, "--addr", "127.0.0.1:1")...)
			if err == nil || !strings.Contains(err.Error(), "no server answers at 127.0.0.1:1") {
				t.Errorf("%q: %v", args, err)
			}
		})
	}
}

// A command that was given no address says which data directory's server it looked for.
func TestCommandsSayWhereTheyLooked(t *testing.T) {
	t.Parallel()
	if conn, err := net.Dial("tcp", NewConfig().Addr); err == nil {
		_ = conn.Close()
		t.Skip("a server answers at the default address")
	}
	dir := filepath.Join(t.TempDir(), "store")
	file := filepath.Join(t.TempDir(), "loom.toml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "data-dir = %q\n", dir), 0o600))
	_, err := loomCommand(t, "scopes", "--config", file)
	if want := "no server answers at 127.0.0.1:50051, and none serves the data directory " + dir; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// follower is what somebody knows who watches a memory.
type follower struct {
	records  map[string]*loombridgev1.Record
	position string
	applied  int
	related  int // relations that were compared
}

// watch applies changes until the memory has nothing more, or most were applied.
func (c *follower) watch(ctx context.Context, from loombridgev1.MemoryServiceClient, most int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := from.WatchRecords(convert.AskText(ctx), &loombridgev1.WatchRecordsRequest{AgentId: "a", After: c.position, IncludeEmbeddings: true})
	if err != nil {
		return err
	}
	for range most {
		change, err := stream.Recv()
		if err != nil {
			return err
		}
		c.position = change.GetPosition()
		if change.GetCaughtUp() {
			return nil
		}
		c.applied++
		if r := change.GetSaved(); r != nil {
			c.records[r.GetId()] = r
		} else {
			delete(c.records, change.GetDeletedId())
		}
	}
	return nil
}

// differs says where the copy is not the memory.
func (c *follower) differs(ctx context.Context, from loombridgev1.MemoryServiceClient) error {
	seen := 0
	ctx = convert.AskText(ctx)
	r := &loombridgev1.ListRecordsRequest{AgentId: "a", PageSize: 500, IncludeEmbeddings: true}
	for {
		page, err := from.ListRecords(ctx, r)
		if err != nil {
			return err
		}
		for _, want := range page.GetRecords() {
			seen++
			read, err := from.GetRecord(ctx, &loombridgev1.GetRecordRequest{AgentId: "a", Name: &loombridgev1.GetRecordRequest_Id{Id: want.GetId()}})
			if err != nil {
				return err
			}
			want.Relations = read.GetRelations()
			if got := c.records[want.GetId()]; !proto.Equal(got, want) {
				return fmt.Errorf("the copy has %v, the memory %v", got, want)
			}
		}
		if r.PageToken = page.GetNextPageToken(); r.PageToken == "" {
			break
		}
	}
	related := 0
	for _, r := range c.records {
		related += len(r.GetRelations())
	}
	if c.related += related; seen != len(c.records) {
		return fmt.Errorf("the copy has %d records, the memory %d", len(c.records), seen)
	}
	return nil
}

// scribble makes random changes until the server is gone or there were enough.
func scribble(ctx context.Context, p *process, random *rand.Rand, most int) (made int, err error) {
	for ; made < most && err == nil; made++ {
		id := fmt.Sprintf("r%d", random.IntN(200))
		near := fmt.Sprintf("r%d", random.IntN(20))
		text := fmt.Sprintf("note %d of the garden", random.IntN(1_000_000))
		switch random.IntN(8) {
		case 0, 1:
			_, err = p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Id: id, Text: text})
		case 2:
			_, err = p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Key: id, Text: text, Replace: true, Embedding: []float32{1, random.Float32()}, EmbeddingSpace: "s"})
		case 3:
			_, err = p.bridge().MemorySave(ctx, &loombridgev1.MemorySaveRequest{AgentId: "a", Text: text, Supersedes: id})
		case 4:
			_, err = p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{AgentId: "a", Name: &loombridgev1.UpdateRecordRequest_Id{Id: id}, Record: &loombridgev1.MemorySaveRequest{Text: text}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}}})
		case 6:
			_, err = p.memory().RelateRecords(ctx, &loombridgev1.RelateRecordsRequest{AgentId: "a", Relations: []*loombridgev1.Relation{{FromId: id, Name: "near", ToId: near}}})
		case 7:
			_, err = p.memory().UnrelateRecords(ctx, &loombridgev1.UnrelateRecordsRequest{AgentId: "a", Relations: []*loombridgev1.Relation{{FromId: id, Name: "near", ToId: near}}})
		case 5:
			_, err = p.memory().DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
		}
		switch status.Code(err) {
		case codes.AlreadyExists, codes.NotFound, codes.InvalidArgument: // the ids are taken by chance
			err = nil
		}
	}
	return made, err
}

// A copy of a memory that is fed by WatchRecords alone is that memory, whenever it has
// caught up: through ends of the stream and kills of the server while others write. `make
// soak` makes 10,000 changes and 20 kills of it.
//
// Y06
func TestWatchRecords(t *testing.T) {
	t.Parallel()
	kills, each := 2, 150
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		kills, each = 20*soakRoundsOr(t, 1), 500
	}
	seed := chance.Seed(t)
	dir, made := t.TempDir(), 0
	c := &follower{records: make(map[string]*loombridgev1.Record)}
	for round := range kills + 1 {
		server := MustStartChild(t, dir)
		p := &process{conn: MustDial(t, server.Address)}
		if round > 0 { // nothing that was acknowledged before, or sent, is another thing now
			must(t, c.watch(t.Context(), p.memory(), 1<<30))
			must(t, c.differs(t.Context(), p.memory()))
		}
		wrote := make(chan int, 1)
		go func() {
			n, err := scribble(t.Context(), p, rand.New(rand.NewPCG(seed, uint64(round))), each)
			if code := status.Code(err); err != nil && code != codes.Unavailable && code != codes.Canceled {
				t.Errorf("a change: %v", err)
			}
			wrote <- n
		}()
		random := rand.New(rand.NewPCG(seed+1, uint64(round)))
		for n, writing := 0, true; writing; n++ {
			if err := c.watch(t.Context(), p.memory(), 1+random.IntN(40)); err != nil {
				t.Fatal(err)
			}
			select {
			case some := <-wrote:
				made, writing = made+some, false
			default:
			}
		}
		if round == kills {
			for _, id := range []string{"from", "to"} { // whatever chance has related
				_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Id: id, Text: "a gate"})
				must(t, err)
			}
			_, err := p.memory().RelateRecords(t.Context(), &loombridgev1.RelateRecordsRequest{AgentId: "a", Relations: []*loombridgev1.Relation{{FromId: "from", Name: "leads", ToId: "to"}}})
			must(t, err)
			must(t, c.watch(t.Context(), p.memory(), 1<<30))
			must(t, c.differs(t.Context(), p.memory()))
			must(t, server.Process.Kill())
			_ = server.Wait()
			if said, err := checkStore(t, filepath.Join(dir, "store")); err != nil {
				t.Errorf("check: %v\n%s", err, said)
			}
			continue
		}
		go func() { _, _ = scribble(t.Context(), p, random, 1<<30) }() // is cut off by the kill
		_ = c.watch(t.Context(), p.memory(), 50)
		must(t, server.Process.Kill())
		_ = server.Wait()
	}
	if c.related == 0 {
		t.Error("no relation was compared")
	}
	t.Logf("%d changes made and more, %d applied, %d relations compared, %d kills: the copy is the memory", made, c.applied, c.related, kills)
}

// A stream that has caught up tells of each change when it is made, and ends with the
// server; of the memories of others it tells nothing. A position of another memory is
// refused.
func TestWatchRecordsLive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	stream, err := p.memory().WatchRecords(t.Context(), &loombridgev1.WatchRecordsRequest{AgentId: "a"})
	must(t, err)
	next := func() *loombridgev1.WatchRecordsResponse {
		t.Helper()
		got, err := stream.Recv()
		must(t, err)
		return got
	}
	if got := next(); !got.GetCaughtUp() || got.GetPosition() == "" || got.GetChange() != nil {
		t.Errorf("of an empty memory: %v", got)
	}
	_, err = p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "b", Text: "of another"})
	must(t, err)
	saved, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", Text: "mine", Expiry: &loombridgev1.MemorySaveRequest_Ttl{Ttl: durationpb.New(time.Hour)}})
	must(t, err)
	if got := next(); got.GetSaved().GetId() != saved.GetId() || got.GetSaved().GetExpireTime() == nil {
		t.Errorf("a save: %v", got)
	}
	caught := next()
	if !caught.GetCaughtUp() {
		t.Errorf("behind it: %v", caught)
	}
	cleared, err := p.memory().DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Filter: "version >= 1"})
	must(t, err)
	if got := next(); cleared.GetDeleted() != 1 || got.GetDeletedId() != saved.GetId() {
		t.Errorf("a deletion: %v", got)
	}
	other, err := p.memory().WatchRecords(t.Context(), &loombridgev1.WatchRecordsRequest{AgentId: "b", After: caught.GetPosition()})
	must(t, err)
	if _, err := other.Recv(); status.Code(err) != codes.OutOfRange || !strings.Contains(err.Error(), "start again") {
		t.Errorf("with the position of another: %v", err)
	}
	must(t, p.Stop())
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) || status.Code(err) != codes.Unavailable {
		t.Errorf("at the stop: %v", err)
	}
}

// The command writes a change a line.
func TestRecordsWatch(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	save(t, p, "Bitcoin closed at 45,000")
	ctx, stop := context.WithCancel(t.Context())
	told := &output{line: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"records", "watch", "--addr", p.Address, "--agent", "a"}, noEnvironment, told, &output{})
	}()
	eventually(t, waitTime, func() error {
		if text := told.String(); !strings.Contains(text, "Bitcoin closed") || !strings.Contains(text, "caught_up") {
			return fmt.Errorf("told %q", text)
		}
		return nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// The records of a space are exported and imported by agents that have access to it.
//
// Y35
func TestRecordsOfSpace(t *testing.T) {
	t.Parallel()
	s := MustRun(t, t.TempDir())
	client := loombridgev1.NewSharingServiceClient(s.conn)
	for _, space := range []string{"team", "copy"} {
		_, err := client.CreateSpace(t.Context(), &loombridgev1.CreateSpaceRequest{AgentId: "a", SpaceId: space})
		must(t, err)
	}
	_, err := loombridgev1.NewBridgeServiceClient(s.conn).MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", SpaceId: "team", Text: "shared"})
	must(t, err)
	file := filepath.Join(t.TempDir(), "team.jsonl")
	_, err = s.records(t, "export", "--agent", "a", "--space", "team", "--out", file)
	must(t, err)
	said, err := s.records(t, "import", file, "--agent", "a", "--space", "copy")
	if must(t, err); !strings.HasPrefix(said, "imported 1 records") {
		t.Errorf("import said %q", said)
	}
	if _, err := s.records(t, "export", "--agent", "stranger", "--space", "team"); err == nil || !strings.Contains(err.Error(), "no read access") {
		t.Errorf("a stranger's export ended with %v", err)
	}
}

// The command lists whose memory a server has, for people and as JSON, by kind and
// beginning; what was written long enough ago is in the bytes.
//
// Y20
func TestScopesCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	p.furnish(t, "")
	p.furnish(t, "ann")
	scopes := func(args ...string) string {
		t.Helper()
		var output, console bytes.Buffer
		must(t, run(t.Context(), append([]string{"scopes", "--addr", p.Address}, args...), noEnvironment, &output, &console))
		return output.String()
	}
	if got := scopes(); !strings.HasPrefix(got, `agent "a": 45 records, 0 archived, `) || !strings.Contains(got, "\nuser \"ann\": 45 records") || strings.Count(got, "\n") != 2 {
		t.Errorf("all: %s", got)
	}
	if got := scopes("--kind", "user", "--prefix", "an", "--json"); !strings.Contains(got, `"userId":"ann"`) || strings.Count(got, "\n") != 1 {
		t.Errorf("persons: %s", got)
	}
	if got := scopes("--prefix", "b"); got != "" {
		t.Errorf("none: %s", got)
	}
	var output, console bytes.Buffer
	if err := run(t.Context(), []string{"scopes", "--addr", p.Address, "--kind", "topic"}, noEnvironment, &output, &console); err == nil || !strings.Contains(err.Error(), "kind") {
		t.Errorf("a kind that is none: %v", err)
	}
}

// Records are related, shown with their relations, and parted again from the command line, in
// the memory of an agent and of a space; what a server refuses is told in its own words.
//
// Y21
func TestRecordsRelate(t *testing.T) {
	t.Parallel()
	p := MustRun(t, t.TempDir())
	_, err := loombridgev1.NewSharingServiceClient(p.conn).CreateSpace(t.Context(), &loombridgev1.CreateSpaceRequest{AgentId: "a", SpaceId: "team"})
	must(t, err)
	for _, space := range []string{"", "team"} {
		var ids []string
		for _, key := range []string{"plan", "step"} {
			saved, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", SpaceId: space, Text: key, Key: key})
			must(t, err)
			ids = append(ids, saved.GetId())
		}
		plan, step := ids[0], ids[1]
		relation := fmt.Sprintf(`"from_id":%q,"name":"part_of","to_id":%q`, step, plan)
		for _, c := range []struct {
			args []string
			want string // begins what is said
		}{
			{[]string{"relations", plan}, ""},
			{[]string{"relate", step, "part_of", plan}, "the relation was made\n"},
			{[]string{"relate", step, "part_of", plan}, "the relation was there already\n"},
			{[]string{"relations", plan}, "{" + relation},
			{[]string{"relations", "--key", "--direction", "out", "--name", "part_of", "step"}, "{" + relation},
			{[]string{"relations", "--direction", "out", plan}, ""},
			{[]string{"relations", "--name", "has", "--name", "is", plan}, ""},
			{[]string{"unrelate", step, "part_of", plan}, "the relation was ended\n"},
			{[]string{"unrelate", step, "part_of", plan}, "there was no such relation\n"},
			{[]string{"relations", step}, ""},
		} {
			said, err := p.records(t, append([]string{c.args[0], "--agent", "a", "--space", space}, c.args[1:]...)...)
			if must(t, err); !strings.HasPrefix(strings.ReplaceAll(said, " ", ""), strings.ReplaceAll(c.want, " ", "")) || (said == "") != (c.want == "") {
				t.Errorf("%v in %q: said %q, want %q", c.args, space, said, c.want)
			}
		}
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"relate", step, "part_of", "nowhere"}, `memory: no record for to_id "nowhere" (NotFound)`},
			{[]string{"relate", step, "part of", plan}, "(InvalidArgument)"},
			{[]string{"relations", "nowhere"}, "(NotFound)"},
			{[]string{"relations", "--direction", "both", plan}, `--direction "both" is not out or in`},
			{[]string{"relate", step, plan}, "accepts 3 arg(s), received 2"},
		} {
			_, err := p.records(t, append([]string{c.args[0], "--agent", "a", "--space", space}, c.args[1:]...)...)
			if err == nil || !strings.Contains(worded(err), c.want) || strings.Contains(worded(err), "rpc error") {
				t.Errorf("%v in %q: %v, want %q", c.args, space, err, c.want)
			}
		}
	}
}
