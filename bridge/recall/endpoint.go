package recall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
)

// Limits of an endpoint.
const (
	// maxAnswerBytes bounds what an endpoint answers.
	maxAnswerBytes = 1 << 20
	// maxRedirects bounds how often an endpoint sends on, and only to itself.
	maxRedirects = 3
	// maxConnections bounds the calls to an endpoint at once. A prompt that finds all
	// taken goes without.
	maxConnections = 16
	// endpointTimeout bounds a call whatever the caller waits.
	endpointTimeout = 10 * time.Second
)

// ErrEndpoint: a knowledge base outside gave no answer that can be used.
var ErrEndpoint = errors.New("recall: knowledge endpoint failed")

// EndpointError says how an endpoint failed. It is an ErrEndpoint.
type EndpointError struct{ problem string }

func (e *EndpointError) Error() string { return ErrEndpoint.Error() + ": " + e.problem }

// Is makes errors.Is(err, ErrEndpoint) true.
func (e *EndpointError) Is(target error) bool { return target == ErrEndpoint }

// Public is what a prompt's receipt says of it: nothing that the endpoint wrote.
func (e *EndpointError) Public() string { return "the knowledge endpoint " + e.problem }

// Endpoint is a knowledge base that is asked by HTTP: a POST of {"query", "limit"}, to be
// answered with {"items": [{"title", "content", "source", "type", "score"}]}. Safe for
// concurrent use.
type Endpoint struct {
	url    *url.URL
	client *http.Client
	free   chan struct{}
}

// NewEndpoint returns the base at a URL of scheme http or https.
func NewEndpoint(address string) (*Endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("recall: the knowledge endpoint is no URL of http or https")
	}
	transport := &http.Transport{
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}
	e := &Endpoint{url: u, free: make(chan struct{}, maxConnections)}
	e.client = &http.Client{Transport: transport, Timeout: endpointTimeout, CheckRedirect: e.checkRedirect}
	return e, nil
}

// checkRedirect lets the endpoint send on to itself only: the question is not
// else's.
func (e *Endpoint) checkRedirect(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return &EndpointError{"redirects without end"}
	case r.URL.Host != e.url.Host || r.URL.Scheme != e.url.Scheme:
		return &EndpointError{"redirects to another host"}
	}
	return nil
}

// Close lets go of connections that wait.
func (e *Endpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Find asks the endpoint.
func (e *Endpoint) Find(ctx context.Context, query string, limit int) ([]inject.Snippet, error) {
	select {
	case e.free <- struct{}{}:
		defer func() { <-e.free }()
	default:
		return nil, &EndpointError{"has too many calls waiting"}
	}
	body, err := json.Marshal(map[string]any{"query": query, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return nil, failed(ctx, err, "can't be reached")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, &EndpointError{fmt.Sprintf("answers with status %d", response.StatusCode)}
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, failed(ctx, err, "breaks off its answer")
	case len(answer) > maxAnswerBytes:
		return nil, &EndpointError{fmt.Sprintf("answers with more than %d bytes", maxAnswerBytes)}
	}
	return piecesIn(answer, limit)
}

// failed says what went wrong; that time ran out is said as such.
func failed(ctx context.Context, err error, otherwise string) error {
	var own *EndpointError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &own):
		return own
	}
	return &EndpointError{otherwise}
}

// piecesIn reads the pieces out of an answer.
func piecesIn(answer []byte, limit int) ([]inject.Snippet, error) {
	var found struct {
		Items []struct {
			Title, Content, Source, Type string
			Score                        *float64
		}
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return nil, &EndpointError{"answers with what is no {items: [...]}"}
	}
	pieces := make([]inject.Snippet, 0, min(len(found.Items), limit))
	for _, item := range found.Items[:min(len(found.Items), limit)] {
		score := 1.0
		if item.Score != nil {
			score = *item.Score
		}
		if math.IsNaN(score) || score < 0 || score > 1 {
			return nil, &EndpointError{"answers with a score that is not from 0 to 1"}
		}
		pieces = append(pieces, inject.Snippet{Title: item.Title, Type: item.Type, Source: item.Source, Content: item.Content, Score: score})
	}
	return pieces, nil
}
