//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/evidence"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-bench/sets"
)

const (
	// embedderDelay is how long each request to the embedder takes, and one in
	// embedderFails is refused.
	embedderDelay, embedderFails = 5 * time.Millisecond, 50
	// plantedEach are planted in each conversation.
	plantedEach = 40
	// exactRecords are in the scope whose vectors are compared with exact search,
	// more than are always searched exactly, and exactQueries are asked.
	exactRecords, exactQueries = 30_000, 300
	// exactHits are compared.
	exactHits = 10
)

// plantedCosines are how near the vector of a query is to that of the planted
// record that it should find.
var plantedCosines = []float64{0.95, 0.9, 0.8, 0.7}

// vectors measures what vectors do to the ranking, and how exactly they are
// searched. The vectors are made of the corpus itself and served by a slow
// embedder that fails now and then.
func (b *memoryBench) vectors(ctx context.Context) error {
	if b.data() == "" {
		b.say("LOOM_EVAL_DATA names no folder: hybrid against words is left out")
	} else if err := b.hybrid(ctx); err != nil {
		return err
	}
	return b.exactness(ctx)
}

// hybrid asks the questions about conversations with vectors in addition to the words.
func (b *memoryBench) hybrid(ctx context.Context) error {
	set, err := sets.Locomo(b.data())
	if err != nil {
		return err
	}
	var corpus []string
	for _, s := range set.Talks {
		for _, d := range evidence.Drafts(s.Turns) {
			corpus = append(corpus, embedded(d))
		}
	}
	model := embedtest.TrainLSA(corpus, &embedtest.LSAOptions{Words: analysis.New(nil).Terms})
	embedder := &embedtest.Server{Embedder: model, Delay: embedderDelay, Fail: func(request int64) int {
		if request%embedderFails == embedderFails-1 {
			return http.StatusServiceUnavailable
		}
		return 0
	}}
	url, stop, err := serveEmbedder(ctx, embedder)
	if err != nil {
		return err
	}
	defer stop()
	server, err := b.serve(ctx, "vectors", "--embedder-url", url, "--embedder-model", "lsa", "--embedder-space", talkSpace)
	if err != nil {
		return err
	}
	defer server.remove()
	begin := time.Now()
	if err := server.backfill(ctx, set.Talks); err != nil {
		return err
	}
	fmt.Printf("\nEmbedder of %s a request, one in %d refused: %d texts in %d requests, back-filled after %s\n",
		embedderDelay, embedderFails, embedder.Texts(), embedder.Requests(), time.Since(begin).Round(time.Millisecond))
	if err := b.hybridRecalls(ctx, server, set.Talks); err != nil {
		return err
	}
	return b.planted(ctx, server, set.Talks, model)
}

// backfill saves the conversations and waits until all have their vectors.
func (s *memoryServer) backfill(ctx context.Context, talks []*sets.Talk) error {
	for _, sample := range talks {
		if _, err := s.load(ctx, sample.ID, evidence.Drafts(sample.Turns)); err != nil {
			return err
		}
	}
	for _, sample := range talks {
		if err := s.until(ctx, sample.ID, func(stats *loombridgev1.MemoryStats) bool { return stats.GetPending() == 0 }); err != nil {
			return err
		}
	}
	return nil
}

// serveEmbedder serves until stop is called.
func serveEmbedder(ctx context.Context, handler http.Handler) (url string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(listener) }() // until it is closed
	stop = func() { _ = web.Close() }
	return fmt.Sprintf("http://%s/v1", listener.Addr()), stop, nil
}

func (b *memoryBench) hybridRecalls(ctx context.Context, server *memoryServer, talks []*sets.Talk) error {
	b.recallHeader("LoCoMo dev, LSA of 384 numbers")
	var at10 []float64
	for _, mode := range []loombridgev1.QueryMode{
		loombridgev1.QueryMode_QUERY_MODE_LEXICAL, loombridgev1.QueryMode_QUERY_MODE_HYBRID, loombridgev1.QueryMode_QUERY_MODE_VECTOR,
	} {
		var found recalls
		degraded := 0
		for _, s := range talks {
			for _, j := range s.Questions {
				ids, receipt, err := server.ask(ctx, &loombridgev1.MemoryQueryRequest{AgentId: s.ID, Query: j.Text, Limit: 50, Mode: mode})
				if err != nil {
					return err
				}
				if len(receipt.GetDegraded()) > 0 {
					degraded++
				}
				found.add(j, ids)
			}
		}
		name := strings.ToLower(strings.TrimPrefix(mode.String(), "QUERY_MODE_"))
		if degraded > 0 {
			name += fmt.Sprintf(" (%d degraded)", degraded)
		}
		if mode == loombridgev1.QueryMode_QUERY_MODE_HYBRID {
			b.printRecalls(name, &found)
		} else {
			b.printRecall(name, &found.all)
		}
		at10 = append(at10, found.all.at(10))
	}
	if err := b.table.Flush(); err != nil {
		return err
	}
	fmt.Printf("hybrid - lexical at 10: %+.2f (aim ≥ -0.5)\n", at10[1]-at10[0])
	return nil
}

// planted saves records that share no word with anything, with vectors of the
// caller's, and asks for them by vectors near these. The text of the query is either found
// in no record or a real question, whose answers compete.
func (b *memoryBench) planted(ctx context.Context, server *memoryServer, talks []*sets.Talk, model *embedtest.LSA) error {
	rng := rand.New(rand.NewPCG(17, 3)) //nolint:gosec // repeatable on purpose
	vectors := make(map[string][]float32)
	for _, s := range talks {
		drafts := make([]*loombridgev1.MemorySaveRequest, plantedEach)
		for i := range drafts {
			id := fmt.Sprintf("planted-%s-%d", s.ID, i)
			vectors[id] = near(rng, model.Vector(s.Turns[rng.IntN(len(s.Turns))].Text), 0.5)
			drafts[i] = &loombridgev1.MemorySaveRequest{
				Id: id, Text: "Qq" + strings.ReplaceAll(id, "-", "") + "zz", Embedding: vectors[id], EmbeddingSpace: talkSpace,
			}
		}
		if _, err := server.load(ctx, s.ID, drafts); err != nil {
			return err
		}
	}
	fmt.Fprintln(b.table, "\nplanted, known by their vector only\tcosine of the query\trecords\tfound @5, unknown words\tfound @5, real question\taim\t")
	for _, cosine := range plantedCosines {
		var found [2]int
		n := 0
		for _, s := range talks {
			for i := range plantedEach {
				id := fmt.Sprintf("planted-%s-%d", s.ID, i)
				n++
				for k, text := range []string{fmt.Sprintf("Xx%dyy?", rng.IntN(1e6)), s.Questions[rng.IntN(len(s.Questions))].Text} {
					ids, _, err := server.ask(ctx, &loombridgev1.MemoryQueryRequest{
						AgentId: s.ID, Query: text, Limit: 5, Embedding: near(rng, vectors[id], cosine), EmbeddingSpace: talkSpace,
					})
					if err != nil {
						return err
					}
					if slices.Contains(ids, id) {
						found[k]++
					}
				}
			}
		}
		fmt.Fprintf(b.table, "\t%.2f\t%d\t%.1f %%\t%.1f %%\t≥ 99 %%\t\n", cosine, n, 100*float64(found[0])/float64(n), 100*float64(found[1])/float64(n))
	}
	return b.table.Flush()
}

// near returns a vector of length one at a cosine to another, in a direction of
// chance.
func near(rng *rand.Rand, v []float32, cosine float64) []float32 {
	v = unit(v)
	away := randomVector(rng, len(v))
	along := float32(dot(away, v))
	for i := range away {
		away[i] -= along * v[i]
	}
	away = unit(away)
	out := make([]float32, len(v))
	for i := range out {
		out[i] = float32(cosine)*v[i] + float32(math.Sqrt(1-cosine*cosine))*away[i]
	}
	return out
}

func randomVector(rng *rand.Rand, dimension int) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return unit(v)
}

func unit(v []float32) []float32 {
	length := math.Sqrt(dot(v, v))
	if length == 0 {
		return v
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / length)
	}
	return out
}

func dot(a, b []float32) (sum float64) {
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

// exactness compares a search by vectors alone with an exact one, on vectors of a language
// and on random vectors, which have no structure to find.
func (b *memoryBench) exactness(ctx context.Context) error {
	talk, err := b.newTalk()
	if err != nil {
		return err
	}
	model := talk.model()
	questions := talk.ask(model)
	server, err := b.serve(ctx, "exact")
	if err != nil {
		return err
	}
	defer server.remove()
	fmt.Fprintf(b.table, "\nvectors of %d numbers, %d records\trecall@%d of exact search\tp50 ms\tp95 ms\taim\t\n", talkDimensions, exactRecords, exactHits)
	rng := rand.New(rand.NewPCG(23, 1)) //nolint:gosec // repeatable on purpose
	for _, kind := range []string{"LSA of turns", "chance"} {
		drafts := talk.turns(exactRecords)
		queries := make([][]float32, exactQueries)
		embed(model, drafts)
		for i := range queries {
			queries[i] = questions[i*7%len(questions)].vector
		}
		aim := "≥ .99"
		if kind == "chance" {
			aim = "reported only"
			for _, d := range drafts {
				d.Embedding, d.EmbeddingSpace = randomVector(rng, talkDimensions), talkSpace
			}
			for i := range queries {
				queries[i] = randomVector(rng, talkDimensions)
			}
		}
		for i, d := range drafts {
			d.Id = fmt.Sprint(i)
		}
		agent := "bench-exact-" + kind
		if _, err := server.load(ctx, agent, drafts); err != nil {
			return err
		}
		e, err := server.compareExact(ctx, agent, drafts, queries)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.table, "%s\t%.4f\t%.2f\t%.2f\t%s\t\n", kind, e.recall, ms(p50us(e.times)), ms(p95us(e.times)), aim)
	}
	return b.table.Flush()
}

// exactness is what such a comparison gives.
type exactness struct {
	recall float64
	times  sample
}

// compareExact asks for the nearest vectors and looks for them itself. A hit
// counts if its cosine is as high as that of the last exact one.
func (s *memoryServer) compareExact(ctx context.Context, agent string, drafts []*loombridgev1.MemorySaveRequest, queries [][]float32) (exactness, error) {
	const rounding = 1e-6
	var e exactness
	vectors := make([][]float32, len(drafts))
	cosines := make([]float64, len(drafts))
	numbers := make(map[string]int)
	for i, d := range drafts {
		vectors[i] = unit(d.GetEmbedding())
		numbers[d.GetId()] = i
	}
	for _, q := range queries {
		begin := time.Now()
		ids, _, err := s.ask(ctx, &loombridgev1.MemoryQueryRequest{
			AgentId: agent, Query: "nearest", Limit: exactHits, Mode: loombridgev1.QueryMode_QUERY_MODE_VECTOR, Embedding: q, EmbeddingSpace: talkSpace,
		})
		if err != nil {
			return e, err
		}
		e.times.latencies = append(e.times.latencies, time.Since(begin))
		for i, v := range vectors {
			cosines[i] = dot(v, q)
		}
		best := slices.Clone(cosines)
		slices.Sort(best)
		least := best[len(best)-exactHits] - rounding
		for _, id := range ids {
			if cosines[numbers[id]] >= least {
				e.recall++
			}
		}
	}
	e.recall /= float64(exactHits * len(queries))
	slices.Sort(e.times.latencies)
	return e, nil
}
