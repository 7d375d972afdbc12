package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// memorySoakKills is how often the server is killed in an ordinary test run.
	memorySoakKills = 3
	// memorySoakPerRound is how often it is killed for every round that
	// LOOM_SOAK_ROUNDS asks for: 200 times in `make soak`.
	memorySoakPerRound = 4
	// memorySoakWriters write at the same time, two of them to each agent.
	memorySoakWriters = 6
	// memorySoakKept bounds the records of one writer, and memorySoakBatch those
	// of one batch: together enough that the index is packed all the time.
	memorySoakKept, memorySoakBatch = 300, 120
	// memorySoakSpace is where the vectors of every third record are.
	memorySoakSpace, memorySoakDimension = "soak/8", 8
	// memorySoakPage is the largest page of a list.
	memorySoakPage = 500
)

// TestSoakMemory kills the server while six writers save, change, delete and
// import records. After each kill the index agrees with the records, all that was
// acknowledged is there, and what was cut off was done whole or not at all and
// can be repeated.
func TestSoakMemory(t *testing.T) {
	t.Parallel()
	kills := memorySoakKills
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		kills = memorySoakPerRound * soakRoundsOr(t, 0)
	}
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &memorySoak{binary: mustBuild(t), data: filepath.Join(t.TempDir(), "store"), workspace: t.TempDir()}
	for i := range memorySoakWriters {
		s.writers = append(s.writers, &memoryWriter{
			name: fmt.Sprintf("w%d", i), agent: fmt.Sprintf("memory-soak-%d", i/2), rng: rand.New(rand.NewPCG(seed, uint64(i)+1)),
			known: make(map[string]remembered), done: make(map[string]int),
		})
	}
	for round := range kills {
		s.round(t, time.Duration(60+rng.IntN(400))*time.Millisecond)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	s.round(t, 0)
	s.report(t, kills)
}

// memorySoak is one server that dies again and again, and those who write to it.
type memorySoak struct {
	binary, data, workspace string
	writers                 []*memoryWriter
}

// round checks what the rounds before left, lets everybody write for a while,
// kills the server and checks the store.
func (s *memorySoak) round(t *testing.T, life time.Duration) {
	t.Helper()
	process, addr := mustStart(t, s.binary, "--addr", "127.0.0.1:0", "--data-dir", s.data, "--workspace", s.workspace, "--log-level", "error")
	conns := make([]*grpc.ClientConn, len(s.writers))
	var verifying, writing sync.WaitGroup
	for i, w := range s.writers {
		conns[i] = mustDial(t, addr)
		defer conns[i].Close()
		verifying.Go(func() { w.verify(t, conns[i]) })
	}
	verifying.Wait()
	if life > 0 {
		for i, w := range s.writers {
			writing.Go(func() { w.write(t, conns[i]) })
		}
		liveFor(life, s.shown)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	process.Wait() //nolint:errcheck // it was killed
	writing.Wait()
	if out, err := exec.Command(s.binary, "check", "--data-dir", s.data).CombinedOutput(); err != nil {
		t.Fatalf("the index does not agree with the records: %v\n%s", err, out)
	}
}

func (s *memorySoak) report(t *testing.T, kills int) {
	t.Helper()
	done, cut := s.done(), 0
	for _, w := range s.writers {
		cut += w.cut
	}
	t.Logf("%d kills: acknowledged and not lost: %d saves, %d updates, %d deletions, %d batches of %d records; %d calls cut off and repeated",
		kills, done["save"], done["update"], done["delete"], done["batch"], done["imported"], cut)
	if !s.shown() {
		t.Error("one kind of call was never acknowledged, so it was not shown")
	}
}

// done are the calls that were acknowledged, by kind.
func (s *memorySoak) done() map[string]int {
	done := make(map[string]int)
	for _, w := range s.writers {
		w.mu.Lock()
		for op, n := range w.done {
			done[op] += n
		}
		w.mu.Unlock()
	}
	return done
}

// shown reports whether there was one call of each kind.
func (s *memorySoak) shown() bool {
	done := s.done()
	return min(done["save"], done["update"], done["delete"], done["batch"]) > 0
}

// remembered is what a record must be.
type remembered struct {
	text     string
	version  int64
	embedded bool
}

// vector is made of the text, so that it need not be remembered.
func (r remembered) vector() []float32 {
	if !r.embedded {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(r.text))
	rng := rand.New(rand.NewPCG(h.Sum64(), 0))
	v := make([]float32, memorySoakDimension)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// memoryWriter is one client and what the server acknowledged to it.
type memoryWriter struct {
	name, agent string
	rng         *rand.Rand
	known       map[string]remembered // by id
	gone        []string              // ids that were deleted
	pending     *memoryMove           // the call that was cut off
	number      int
	cut         int

	mu   sync.Mutex
	done map[string]int
}

// memoryMove is one call and what it changes.
type memoryMove struct {
	op      string // save, batch, update, delete
	request string
	after   map[string]remembered // what the records are afterwards; none: deleted
	ids     []string              // in order
	version int64                 // that an update or a deletion expects
}

// write calls until the server has gone.
func (w *memoryWriter) write(tb testing.TB, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), soakDeadline)
	defer cancel()
	for {
		m := w.next()
		w.pending = &m
		if err := w.do(ctx, conn, m); err != nil {
			w.cut++
			if !died(err) {
				tb.Errorf("%s: %s of %q: %v", w.name, m.op, m.ids, err)
			}
			return
		}
		w.apply(m)
	}
}

// next makes a call up.
func (w *memoryWriter) next() memoryMove {
	w.number++
	m := memoryMove{request: fmt.Sprintf("%s-%d", w.name, w.number), after: make(map[string]remembered)}
	p := w.rng.IntN(10)
	full := len(w.known) > memorySoakKept
	switch {
	case len(w.known) > 0 && (p == 0 || full && p < 8):
		m.op, m.ids = "delete", []string{w.any()}
		m.version = w.known[m.ids[0]].version
	case len(w.known) > 0 && p < 5:
		m.op, m.ids = "update", []string{w.any()}
		old := w.known[m.ids[0]]
		m.version = old.version
		m.after[m.ids[0]] = remembered{fmt.Sprintf("%s changed marker%s to number%d", w.name, m.ids[0], w.number), old.version + 1, old.embedded}
	case p < 6 && !full:
		m.op = "batch"
		w.fresh(&m, 1+w.rng.IntN(memorySoakBatch))
	default:
		m.op = "save"
		w.fresh(&m, 1)
	}
	return m
}

// fresh adds new records to a call.
func (w *memoryWriter) fresh(m *memoryMove, n int) {
	for i := range n {
		id := fmt.Sprintf("%sn%di%d", w.name, w.number, i)
		m.ids = append(m.ids, id)
		m.after[id] = remembered{fmt.Sprintf("%s remembers marker%s of its work", w.name, id), 1, i%3 == 0}
	}
}

// any returns one of the records, the same for the same seed.
func (w *memoryWriter) any() string {
	ids := slices.Sorted(maps.Keys(w.known))
	return ids[w.rng.IntN(len(ids))]
}

// do makes the call.
func (w *memoryWriter) do(ctx context.Context, conn *grpc.ClientConn, m memoryMove) error {
	memory := loombridgev1.NewMemoryServiceClient(conn)
	var err error
	switch m.op {
	case "save":
		d := w.draft(m, m.ids[0])
		_, err = loombridgev1.NewBridgeServiceClient(conn).MemorySave(ctx, &loombridgev1.MemorySaveRequest{
			AgentId: w.agent, Id: d.GetId(), Key: d.GetKey(), Text: d.GetText(), SessionId: d.GetSessionId(), Tags: d.GetTags(),
			Embedding: d.GetEmbedding(), EmbeddingSpace: d.GetEmbeddingSpace(), RequestId: m.request,
		})
	case "batch":
		drafts := make([]*loombridgev1.MemorySaveRequest, len(m.ids))
		for i, id := range m.ids {
			drafts[i] = w.draft(m, id)
		}
		_, err = memory.BatchSave(ctx, &loombridgev1.BatchSaveRequest{AgentId: w.agent, Records: drafts, RequestId: m.request})
	case "update":
		err = w.update(ctx, memory, m)
	case "delete":
		_, err = memory.DeleteRecords(ctx, &loombridgev1.DeleteRecordsRequest{
			AgentId: w.agent, Name: &loombridgev1.DeleteRecordsRequest_Id{Id: m.ids[0]}, ExpectedVersion: &m.version, RequestId: m.request,
		})
	}
	return err
}

func (w *memoryWriter) update(ctx context.Context, memory loombridgev1.MemoryServiceClient, m memoryMove) error {
	after := m.after[m.ids[0]]
	draft := &loombridgev1.MemorySaveRequest{Text: after.text}
	mask := []string{"text"}
	if after.embedded {
		draft.Embedding, draft.EmbeddingSpace = after.vector(), memorySoakSpace
		mask = append(mask, "embedding")
	}
	_, err := memory.UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
		AgentId: w.agent, Name: &loombridgev1.UpdateRecordRequest_Key{Key: soakKey(m.ids[0])}, Record: draft,
		UpdateMask: &fieldmaskpb.FieldMask{Paths: mask}, ExpectedVersion: &m.version, RequestId: m.request,
	})
	return err
}

func soakKey(id string) string { return "key of " + id }

func (w *memoryWriter) draft(m memoryMove, id string) *loombridgev1.MemorySaveRequest {
	r := m.after[id]
	d := &loombridgev1.MemorySaveRequest{Id: id, Key: soakKey(id), Text: r.text, SessionId: w.name, Tags: []string{"soak"}}
	if r.embedded {
		d.Embedding, d.EmbeddingSpace = r.vector(), memorySoakSpace
	}
	return d
}

// apply takes over what a call did.
func (w *memoryWriter) apply(m memoryMove) {
	w.known = m.on(w.known)
	if m.op == "delete" {
		w.gone = append(w.gone, m.ids[0])
	}
	w.pending = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.op == "batch" {
		w.done["imported"] += len(m.ids)
	}
	w.done[m.op]++
}

// on changes the records as the call does.
func (m memoryMove) on(known map[string]remembered) map[string]remembered {
	for _, id := range m.ids {
		if after, ok := m.after[id]; ok {
			known[id] = after
		} else {
			delete(known, id)
		}
	}
	return known
}

// verify looks for everything, repeats the call that was cut off, twice, and
// looks again.
func (w *memoryWriter) verify(tb testing.TB, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), soakDeadline)
	defer cancel()
	if m := w.pending; m != nil {
		found, err := w.list(ctx, conn)
		if err != nil {
			tb.Errorf("%s: list: %v", w.name, err)
			return
		}
		if before, after := w.differences(w.known, found), w.differences(m.on(maps.Clone(w.known)), found); min(len(before), len(after)) > 0 {
			tb.Errorf("%s: %s of %d records was cut off. It was not left out: %q. It was not done: %q", w.name, m.op, len(m.ids), before, after)
		}
		for range 2 {
			if err := w.do(ctx, conn, *m); err != nil {
				tb.Errorf("%s: repeat %s of %q: %v", w.name, m.op, m.ids, err)
				return
			}
		}
		w.apply(*m)
	}
	found, err := w.list(ctx, conn)
	if err != nil {
		tb.Errorf("%s: list: %v", w.name, err)
		return
	}
	if wrong := w.differences(w.known, found); len(wrong) > 0 {
		tb.Errorf("%s: %q", w.name, wrong)
	}
	w.sample(ctx, tb, conn)
}

// list returns the writer's records.
func (w *memoryWriter) list(ctx context.Context, conn *grpc.ClientConn) (map[string]*loombridgev1.Record, error) {
	found := make(map[string]*loombridgev1.Record)
	request := &loombridgev1.ListRecordsRequest{
		AgentId: w.agent, Filter: fmt.Sprintf("session_id = %q AND tags:soak", w.name), PageSize: memorySoakPage,
	}
	for {
		page, err := loombridgev1.NewMemoryServiceClient(conn).ListRecords(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, r := range page.GetRecords() {
			found[r.GetId()] = r
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return found, nil
		}
	}
}

// maxDifferences are told at most.
const maxDifferences = 5

// differences compares what is stored with what must be.
func (w *memoryWriter) differences(want map[string]remembered, found map[string]*loombridgev1.Record) (wrong []string) {
	for id, r := range want {
		got := found[id]
		switch {
		case got == nil:
			wrong = append(wrong, id+" is lost")
		case got.GetText() != r.text || got.GetVersion() != r.version:
			wrong = append(wrong, fmt.Sprintf("%s is version %d %q, not version %d %q", id, got.GetVersion(), got.GetText(), r.version, r.text))
		}
	}
	for id := range found {
		if _, ok := want[id]; !ok {
			wrong = append(wrong, id+" should not be there")
		}
	}
	return wrong[:min(len(wrong), maxDifferences)]
}

// sample asks for a few records in the other ways.
func (w *memoryWriter) sample(ctx context.Context, tb testing.TB, conn *grpc.ClientConn) {
	const each = 4
	for i := range min(each, len(w.known)) {
		id := w.any()
		words := strings.Fields(w.known[id].text)
		query := &loombridgev1.MemoryQueryRequest{AgentId: w.agent, Query: words[2], Limit: 1}
		if i%2 == 1 && w.known[id].embedded {
			query.Embedding, query.EmbeddingSpace, query.Mode = w.known[id].vector(), memorySoakSpace, loombridgev1.QueryMode_QUERY_MODE_VECTOR
		}
		found, err := loombridgev1.NewBridgeServiceClient(conn).MemoryQuery(ctx, query)
		if err != nil || len(found.GetHits()) != 1 || found.GetHits()[0].GetRecord().GetId() != id {
			tb.Errorf("%s: %s is not found by its own word, or vector: %v, %v", w.name, id, found, err)
		}
	}
	for range min(each, len(w.known)) {
		id := w.any()
		got, err := loombridgev1.NewMemoryServiceClient(conn).GetRecord(ctx, &loombridgev1.GetRecordRequest{
			AgentId: w.agent, Name: &loombridgev1.GetRecordRequest_Key{Key: soakKey(id)}, IncludeEmbeddings: true,
		})
		if want := w.known[id].vector(); err != nil || !slices.Equal(got.GetEmbedding(), want) {
			tb.Errorf("%s: %s has the vector %v, want %v: %v", w.name, id, got.GetEmbedding(), want, err)
		}
	}
	for _, id := range w.gone[max(0, len(w.gone)-each):] {
		_, err := loombridgev1.NewMemoryServiceClient(conn).GetRecord(ctx, &loombridgev1.GetRecordRequest{
			AgentId: w.agent, Name: &loombridgev1.GetRecordRequest_Key{Key: soakKey(id)},
		})
		if status.Code(err) != codes.NotFound {
			tb.Errorf("%s: %s was deleted and is there: %v", w.name, id, err)
		}
	}
}
