package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

const (
	// firstPause is how long a client waits before it sends a request again; the
	// time doubles with each try.
	firstPause = 200 * time.Millisecond
	// maxPause bounds that, and what a server may ask for.
	maxPause = 30 * time.Second
	// fairWait is how long a caller must have waited for his leaving to say
	// something of the server: one with a deadline of a millisecond could else
	// have the breaker open for all.
	fairWait = 500 * time.Millisecond
	// maxMessageBytes bounds what is kept of an answer that is an error.
	maxMessageBytes = 512
	// numberBytes is the longest that one number of an answer is, and
	// answerBytes what stands around the numbers.
	numberBytes = 32
	answerBytes = 64 << 10
)

// Client asks a server for vectors. It is safe for concurrent use.
type Client struct {
	options Options
	url     string
	http    *http.Client
	// Queries have a separate breaker: records in the background, of which some
	// may be what the server fails at, must not stop the vectors of waiting queries.
	queries, texts *breaker
}

var _ QueryEmbedder = (*Client)(nil)

// NewClient returns a client and calls no server yet. ErrOptions says what is wrong.
func NewClient(o Options) (*Client, error) {
	address, err := o.check()
	if err != nil {
		return nil, err
	}
	return &Client{
		options: o,
		url:     address.String(),
		http: &http.Client{
			Transport: o.Transport,
			// A key must not follow to wherever a server points.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		queries: newBreaker(),
		texts:   newBreaker(),
	}, nil
}

// Space names what the vectors can be compared with.
func (c *Client) Space() string { return c.options.Space }

// EmbedQuery returns the vector of a text that is searched for. Errors are those
// of Embed.
func (c *Client) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := c.ask(ctx, c.queries, []string{c.options.QueryPrefix + text})
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// Embed returns one vector for each text. Where a request fails in a way that
// may pass, it is sent again after a while, until ctx ends or the attempts are
// used up.
//
// Errors: *StatusError, ErrUnreachable, ErrAnswer, ErrOpen, or that of ctx.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	batches := c.split(texts)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	results, errs := make([][][]float32, len(batches)), make([]error, len(batches))
	var group sync.WaitGroup
	turns := make(chan struct{}, c.options.Parallel)
	for i, batch := range batches {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			results[i], errs[i] = c.ask(ctx, c.texts, batch)
			// What the breaker holds back must not stop the request that it let
			// through to see.
			if errs[i] != nil && !errors.Is(errs[i], ErrOpen) {
				stop()
			}
		})
	}
	group.Wait()
	if err := firstCause(errs); err != nil {
		return nil, err
	}
	vectors := slices.Concat(results...)
	return vectors, checkDimensions(vectors)
}

// firstCause returns the most informative error: not that of requests which
// ended because of the others, and rather what the server did than that it is
// left alone.
func firstCause(errs []error) error {
	said := func(err error) int {
		switch {
		case err == nil:
			return 0
		case errors.Is(err, context.Canceled):
			return 1
		case errors.Is(err, ErrOpen) && !errors.Is(err, ErrStatus):
			return 2
		}
		return 3
	}
	var first error
	for _, err := range errs {
		if said(err) > said(first) {
			first = err
		}
	}
	return first
}

// split puts texts into batches, with their prefix.
func (c *Client) split(texts []string) [][]string {
	var batches [][]string
	var batch []string
	size := 0
	for _, text := range texts {
		text = c.options.TextPrefix + text
		if len(batch) == c.options.Batch || len(batch) > 0 && size+len(text) > c.options.BatchBytes {
			batches, batch, size = append(batches, batch), nil, 0
		}
		batch, size = append(batch, text), size+len(text)
	}
	if len(batch) > 0 {
		batches = append(batches, batch)
	}
	return batches
}

// ask sends one batch, again where that may help.
func (c *Client) ask(ctx context.Context, b *breaker, texts []string) ([][]float32, error) {
	body, err := json.Marshal(request{Model: c.options.Model, Input: texts, Dimensions: c.options.Dimensions, Encoding: "float"})
	if err != nil {
		return nil, fmt.Errorf("embed: write request: %w", err)
	}
	var before error
	for attempt := 1; ; attempt++ {
		vectors, err := c.askOnce(ctx, b, body, len(texts))
		if before != nil && errors.Is(err, ErrOpen) {
			return nil, fmt.Errorf("%w, after: %w", err, before)
		}
		before = err
		if err == nil || !temporary(err) || attempt >= c.options.Attempts {
			return vectors, err
		}
		if !kv.Sleep(ctx, pause(attempt, err)) {
			return nil, fmt.Errorf("%w, after: %w", ctx.Err(), err)
		}
	}
}

// temporary reports whether the same request may succeed soon.
func temporary(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.temporary()
	}
	return errors.Is(err, ErrUnreachable)
}

// pause is how long to wait after an attempt: longer each time, never quite as
// long as others wait, and at least as long as the server asks.
func pause(attempt int, err error) time.Duration {
	d := min(firstPause<<min(attempt-1, 16), maxPause)
	d = d/2 + rand.N(d/2+1)
	var status *StatusError
	if errors.As(err, &status) {
		d = max(d, min(status.RetryAfter, maxPause))
	}
	return d
}

// askOnce sends a request, unless the breaker is open, and reports to the breaker how
// it went.
func (c *Client) askOnce(ctx context.Context, b *breaker, body []byte, texts int) ([][]float32, error) {
	if err := b.enter(time.Now()); err != nil {
		return nil, err
	}
	began := time.Now()
	vectors, err := c.send(ctx, body, texts)
	switch {
	case err == nil || errors.Is(err, ErrStatus) && !serverFailed(err):
		b.mu.Lock()
		defer b.mu.Unlock()
		b.failures, b.rest, b.probing = 0, 0, false
	case errors.Is(err, context.Canceled) || ctx.Err() != nil && time.Since(began) < fairWait:
		b.left()
	default:
		b.failed(time.Now())
	}
	return vectors, err
}

// serverFailed reports whether the server is broken, not the request, and not
// merely busy.
func serverFailed(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code >= http.StatusInternalServerError
}

func (c *Client) send(ctx context.Context, body []byte, texts int) ([][]float32, error) {
	ctx, stop := context.WithTimeout(ctx, c.options.Timeout)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("embed: make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if c.options.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+c.options.APIKey)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, c.refusal(answer)
	}
	limit := int64(answerBytes + texts*MaxDimension*numberBytes)
	content, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case int64(len(content)) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrAnswer, limit)
	}
	return readAnswer(content, texts, c.options.Dimensions)
}

// refusal returns what the server said, without the key, should it repeat it.
func (c *Client) refusal(answer *http.Response) error {
	// A key that begins within what is kept is read to its end, to be found.
	content, _ := io.ReadAll(io.LimitReader(answer.Body, int64(maxMessageBytes+len(c.options.APIKey))))
	message := string(content)
	if c.options.APIKey != "" {
		message = strings.ReplaceAll(message, c.options.APIKey, "***")
	}
	message = strings.ToValidUTF8(message[:min(len(message), maxMessageBytes)], "")
	return &StatusError{Code: answer.StatusCode, Message: message, RetryAfter: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
}

// retryAfter reads seconds or a date; zero for neither.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(time.Hour/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
