package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

const (
	// movedRecords are exported of each memory, in CI and with LOOM_SOAK_ROUNDS.
	movedRecords, movedSoakRecords = 300, 10_000
	// hashedDimensions are those of the vectors of mustHashing.
	hashedDimensions = 64
)

// mustHashing starts an embedder whose vectors are those of the texts' words, so that other
// texts have other ones.
func mustHashing(tb testing.TB) *httptest.Server {
	tb.Helper()
	type vector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := struct {
			Data []vector `json:"data"`
		}{}
		for i, text := range asked.Input {
			v := vector{i, make([]float32, hashedDimensions)}
			for _, word := range strings.Fields(text) {
				h := fnv.New32a()
				_, _ = h.Write([]byte(word))
				v.Embedding[h.Sum32()%hashedDimensions]++
			}
			answer.Data = append(answer.Data, v)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	tb.Cleanup(s.Close)
	return s
}

// owner is whose memory is moved.
type owner struct{ user, space string }

func (o owner) args(more ...string) []string {
	return append(more, "--agent", "a", "--user", o.user, "--space", o.space)
}

// grow gives a memory records that have everything: versions, keys, vectors of three spaces,
// times, chains, an archive.
func (o owner) grow(ctx context.Context, tb testing.TB, p *process, records int, random *rand.Rand) {
	tb.Helper()
	var ids []string
	for len(ids) < records {
		r := &loombridgev1.BatchSaveRequest{AgentId: "a", UserId: o.user, SpaceId: o.space}
		for i := len(ids); i < records && len(r.Records) < 200; i++ {
			d := &loombridgev1.MemorySaveRequest{Text: words(random, 12), Tags: []string{fmt.Sprint("t", i%7)}, SessionId: fmt.Sprint("s", i%5)}
			switch random.IntN(6) {
			case 0:
				d.Embedding, d.EmbeddingSpace = []float32{random.Float32(), -random.Float32() * 1e-7, 1e20}, "ours/3"
			case 1:
				d.Embedding, d.EmbeddingSpace = []float32{random.Float32(), 1}, "other"
			case 2:
				d.MetadataForm = &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"n":%d,"big":12345678901234567890,"a":["<&>\u2028"]}`, i)}
			}
			r.Records = append(r.Records, d)
			ids = append(ids, "")
		}
		got, err := p.memory().BatchSave(ctx, r)
		must(tb, err)
		for i, saved := range got.GetSaved() {
			ids[len(ids)-len(r.Records)+i] = saved.GetId()
		}
	}
	save := func(r *loombridgev1.MemorySaveRequest) {
		tb.Helper()
		r.AgentId, r.UserId, r.SpaceId = "a", o.user, o.space
		_, err := p.bridge().MemorySave(ctx, r)
		must(tb, err)
	}
	for i := range max(records/20, 5) {
		save(&loombridgev1.MemorySaveRequest{Text: words(random, 8), Key: fmt.Sprint("key", i%5), Replace: true, Importance: proto.Float64(random.Float64())})
		save(&loombridgev1.MemorySaveRequest{Text: words(random, 8), DerivedFrom: []string{ids[i]}, Supersedes: ids[records-1-i], Origin: loombridgev1.Origin_ORIGIN_TOOL})
		_, err := p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
			AgentId: "a", UserId: o.user, SpaceId: o.space, Name: &loombridgev1.UpdateRecordRequest_Id{Id: ids[records/2+i]}, Archived: proto.Bool(true),
		})
		must(tb, err)
	}
	eventually(tb, waitTime, func() error {
		got, err := p.memory().ListRecords(ctx, &loombridgev1.ListRecordsRequest{AgentId: "a", UserId: o.user, SpaceId: o.space, StatsOnly: true})
		if err == nil && got.GetStats().GetPending() > 0 {
			err = fmt.Errorf("%d records wait for their vectors", got.GetStats().GetPending())
		}
		return err
	})
}

// Memories of an agent, a person and a space with everything that records can have, vectors
// of an embedder and of callers included, are the same export after two moves: to a server
// that has no embedder, and from there to a third one.
//
// Y07
func TestSoakRecordsExport(t *testing.T) {
	t.Parallel()
	records := movedRecords
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		records = movedSoakRecords
	}
	seed := chance.Seed(t)
	owners := []owner{{}, {user: "ann"}, {space: "team"}}
	model := mustHashing(t)
	servers := []*process{
		MustRun(t, t.TempDir(), "--embedder-url", model.URL+"/v1", "--embedder-model", "m"), MustRun(t, t.TempDir()), MustRun(t, t.TempDir()),
	}
	for _, p := range servers {
		_, err := loombridgev1.NewSharingServiceClient(p.conn).CreateSpace(t.Context(), &loombridgev1.CreateSpaceRequest{AgentId: "a", SpaceId: "team"})
		must(t, err)
	}
	for i, o := range owners {
		o.grow(t.Context(), t, servers[0], records, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	dir, digests, first := t.TempDir(), []string{}, ""
	for i, p := range servers {
		sum := sha256.New()
		for j, o := range owners {
			file := func(server int) string { return filepath.Join(dir, fmt.Sprintf("%d-%d", server, j)) }
			if i > 0 {
				_, err := p.records(t, o.args("import", file(i-1))...)
				must(t, err)
			}
			_, err := p.records(t, o.args("export", "--out", file(i))...)
			must(t, err)
			text := mustRead(t, file(i))
			_, _ = sum.Write(text)
			if first += string(text); i == 0 {
				t.Logf("%+v: %d lines, %d bytes", o, strings.Count(string(text), "\n"), len(text))
			}
		}
		if i == 0 {
			for _, want := range []string{`"earlier":true`, `"embedding_space":"ours/3"`, `"embedding_space":"other"`, `"embedding_space":"` + "127.0.0.1", `"archived`, `"superseded_by"`, `"derived_from"`} {
				if !strings.Contains(first, want) {
					t.Errorf("no record of the export has %s", want)
				}
			}
		}
		digests = append(digests, hex.EncodeToString(sum.Sum(nil)))
	}
	t.Logf("export: %s", digests[0])
	if digests[1] != digests[0] || digests[2] != digests[0] {
		t.Errorf("after the imports the exports are %v", digests[1:])
	}
}
