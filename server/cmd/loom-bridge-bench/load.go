//go:build cgo && !norocksdb

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// client is one caller with its own connection.
type client struct {
	number int
	conn   *grpc.ClientConn
	calls  int
}

// dial opens one connection for each client.
func dial(addr string, clients int) ([]*client, error) {
	all := make([]*client, clients)
	for i := range all {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("bench: dial %s: %w", addr, err)
		}
		all[i] = &client{number: i, conn: conn}
	}
	return all, nil
}

func hangUp(clients []*client) {
	for _, c := range clients {
		c.conn.Close() //nolint:errcheck // nothing is left to send
	}
}

// operation is one call that is measured.
type operation func(ctx context.Context, c *client) error

// sample is what one round of load measured.
type sample struct {
	latencies []time.Duration // sorted
	elapsed   time.Duration
}

// percentile returns the latency that share p of the calls did not exceed.
func (s sample) percentile(p float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(int(p*float64(len(s.latencies))), len(s.latencies)-1)]
}

// throughput returns calls per second.
func (s sample) throughput() float64 {
	return float64(len(s.latencies)) / s.elapsed.Seconds()
}

// run lets every client call op one call after another for the given time.
// Calls of the first tenth warm up and don't count.
func run(ctx context.Context, clients []*client, op operation, length time.Duration) (sample, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex // guards all and first
		all   []time.Duration
		first error
	)
	start := time.Now()
	counted, end := start.Add(length/10), start.Add(length)
	for _, c := range clients {
		wg.Go(func() {
			mine, err := loop(ctx, c, op, counted, end)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	return sample{all, time.Since(counted)}, first
}

func loop(ctx context.Context, c *client, op operation, counted, end time.Time) ([]time.Duration, error) {
	var latencies []time.Duration
	for {
		begin := time.Now()
		if begin.After(end) {
			return latencies, nil
		}
		if err := op(ctx, c); err != nil {
			return latencies, err
		}
		c.calls++
		if begin.After(counted) {
			latencies = append(latencies, time.Since(begin))
		}
	}
}

// median returns the middle of what f gives for each sample.
func median(samples []sample, f func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = f(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func p50us(s sample) float64 { return float64(s.percentile(0.50)) / float64(time.Microsecond) }
func p99us(s sample) float64 { return float64(s.percentile(0.99)) / float64(time.Microsecond) }

// savedBytes is the size of a saved text: about a long paragraph.
const savedBytes = 1 << 10

// vocabulary is how many different words the texts draw from.
const vocabulary = 20_000

// functionWords are the ones that English is glued together with; they make
// up about half of any text.
var functionWords = strings.Fields("the of and to a in that is was for it with as his on be at by had not are but from or have an they which you were")

// texts makes n texts of savedBytes: every second word is a function word, the others
// follow Zipf's law, as in natural text. The same seed gives the same texts.
func texts(seed uint64, n int) []string {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable on purpose
	zipf := rand.NewZipf(rng, 1.1, 4, vocabulary-1)
	all := make([]string, n)
	for i := range all {
		var b strings.Builder
		for b.Len() < savedBytes {
			if rng.IntN(2) == 0 {
				b.WriteString(functionWords[rng.IntN(len(functionWords))])
			} else {
				b.WriteString(word(zipf.Uint64()))
			}
			b.WriteByte(' ')
		}
		all[i] = b.String()[:savedBytes]
	}
	return all
}

// word spells the n-th word: pronounceable, frequent ones shorter.
func word(n uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n += 70; n > 0; n /= 70 {
		b.WriteByte(consonants[n%14])
		b.WriteByte(vowels[n/14%5])
	}
	return b.String()
}

// query takes five words of a text.
func query(text string) string {
	words := strings.Fields(text)
	pick := func(i int) string { return words[i%len(words)] }
	return strings.Join([]string{pick(3), pick(17), pick(40), pick(71), pick(90)}, " ")
}

// agent names the agent of a client.
func agent(number int) string { return fmt.Sprintf("bench-%d", number) }
