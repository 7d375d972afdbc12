package embed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/embedtest"
	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// lengths is an embedder whose vectors tell the text: its length, its first byte
// and one.
type lengths struct{}

func (lengths) Space() string { return "lengths" }

func (lengths) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = []float32{float32(len(text)), float32(text[0]), 1}
	}
	return vectors, nil
}

// MustServe serves for the length of a test and returns the base URL.
func MustServe(tb testing.TB, handler http.Handler) string {
	tb.Helper()
	server := httptest.NewServer(handler)
	tb.Cleanup(server.Close)
	return server.URL + "/v1"
}

func MustClient(tb testing.TB, o embed.Options) *embed.Client {
	tb.Helper()
	if o.Model == "" {
		o.Model = "test-model"
	}
	client, err := embed.NewClient(o)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// inProcess carries requests to a handler without a network, so that a test can
// hold the time.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.handler.ServeHTTP(recorder, r)
	}()
	<-done
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

func texts(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat(string(rune('a'+i%26)), i+1)
	}
	return all
}

// F08
func TestEmbed(t *testing.T) {
	tests := map[string]*struct {
		server   embedtest.Server
		options  embed.Options
		requests int64
	}{
		"one batch":    {options: embed.Options{Batch: 64}, requests: 1},
		"batches":      {options: embed.Options{Batch: 7}, requests: 8},
		"few bytes":    {options: embed.Options{Batch: 64, BatchBytes: 200}, requests: 7},
		"base64":       {server: embedtest.Server{Base64: true}, options: embed.Options{Batch: 64}, requests: 1},
		"out of order": {server: embedtest.Server{Backwards: true}, options: embed.Options{Batch: 20}, requests: 3},
		"one at a time": {
			server: embedtest.Server{Backwards: true}, options: embed.Options{Batch: 20, Parallel: 1}, requests: 3,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.server.Embedder = lengths{}
			test.options.BaseURL = MustServe(t, &test.server)
			got, err := MustClient(t, test.options).Embed(t.Context(), texts(50))
			if err != nil {
				t.Fatal(err)
			}
			want, _ := lengths{}.Embed(t.Context(), texts(50))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("vectors (-want +got):\n%s", diff)
			}
			if n := test.server.Requests(); n != test.requests {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
		})
	}
}

func TestEmbedNothing(t *testing.T) {
	server := embedtest.Server{Embedder: lengths{}}
	got, err := MustClient(t, embed.Options{BaseURL: MustServe(t, &server)}).Embed(t.Context(), nil)
	if err != nil || len(got) != 0 || server.Requests() != 0 {
		t.Errorf("got %v, %v after %d requests; want nothing after none", got, err, server.Requests())
	}
}

// A request says what the protocol wants, and nothing that old servers refuse.
func TestRequest(t *testing.T) {
	var body, authorization string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		body, authorization = string(content), r.Header.Get("Authorization")
		fmt.Fprint(w, `{"data":[{"embedding":[1,2]}]}`)
	})
	client := MustClient(t, embed.Options{
		BaseURL: MustServe(t, handler) + "/", Model: "m", APIKey: "secret", Dimensions: 2, QueryPrefix: "query: ", TextPrefix: "passage: ",
	})
	if _, err := client.Embed(t.Context(), []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if want := `{"model":"m","input":["passage: x"],"dimensions":2,"encoding_format":"float"}`; body != want {
		t.Errorf("request is %s, want %s", body, want)
	}
	if authorization != "Bearer secret" {
		t.Errorf("authorization is %q", authorization)
	}
	v, err := embed.Query(t.Context(), client, "y")
	if err != nil || len(v) != 2 || !strings.Contains(body, `"query: y"`) {
		t.Errorf("query gave %v, %v after request %s", v, err, body)
	}
	if got, want := client.Space(), "127.0.0.1/m/2"; got != want {
		t.Errorf("space is %q, want %q", got, want)
	}
}

func TestUnusableAnswers(t *testing.T) {
	infinite, _ := json.Marshal("AACAfwAAgD8=") // base64 of +Inf and 1
	answers := map[string]string{
		"too few":         `{"data":[{"index":0,"embedding":[1,2]}]}`,
		"too many":        `{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}`,
		"index twice":     `{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[2]}]}`,
		"index beyond":    `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[2]}]}`,
		"dimensions":      `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2,3]}]}`,
		"empty vector":    `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[]}]}`,
		"no JSON":         `<html>`,
		"text as number":  `{"data":[{"index":0,"embedding":["a"]},{"index":1,"embedding":[2]}]}`,
		"beyond a single": `{"data":[{"index":0,"embedding":[1e99]},{"index":1,"embedding":[2]}]}`,
		"not finite":      `{"data":[{"index":0,"embedding":` + string(infinite) + `},{"index":1,"embedding":[1,2]}]}`,
		"odd base64":      `{"data":[{"index":0,"embedding":"AAA="},{"index":1,"embedding":"AAA="}]}`,
		"too long":        `{"data":[` + strings.Repeat(" ", 1<<20) + `]}`,
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			url := MustServe(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
			_, err := MustClient(t, embed.Options{BaseURL: url}).Embed(t.Context(), []string{"a", "b"})
			if !errors.Is(err, embed.ErrAnswer) {
				t.Errorf("error is %v, want ErrAnswer", err)
			}
		})
	}
}

// TestRetries holds the time: what passes is tried again, what does not is not.
func TestRetries(t *testing.T) {
	first := func(n int64, status int) func(int64) int {
		return func(request int64) int {
			if request <= n {
				return status
			}
			return 0
		}
	}
	tests := map[string]struct {
		fail     func(int64) int
		requests int64
		want     error
		rejected bool
	}{
		"busy twice":    {fail: first(2, http.StatusTooManyRequests), requests: 3},
		"broken once":   {fail: first(1, http.StatusBadGateway), requests: 2},
		"always broken": {fail: first(99, http.StatusServiceUnavailable), requests: 4, want: embed.ErrStatus},
		"wrong key":     {fail: first(99, http.StatusUnauthorized), requests: 1, want: embed.ErrStatus},
		"bad text":      {fail: first(99, http.StatusBadRequest), requests: 1, want: embed.ErrStatus, rejected: true},
		"moved":         {fail: first(99, http.StatusFound), requests: 1, want: embed.ErrStatus},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := embedtest.Server{Embedder: lengths{}, Fail: test.fail}
				client := MustClient(t, embed.Options{BaseURL: "http://embedder/v1", Transport: inProcess{&server}})
				_, err := client.Embed(t.Context(), []string{"a"})
				if !errors.Is(err, test.want) || server.Requests() != test.requests {
					t.Errorf("%v after %d requests, want %v after %d", err, server.Requests(), test.want, test.requests)
				}
				if embed.Rejected(err) != test.rejected {
					t.Errorf("rejected is %t, want %t", !test.rejected, test.rejected)
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	values := map[string]time.Duration{
		"7":                             7 * time.Second,
		"Sat, 01 Jan 2000 00:00:09 GMT": 9 * time.Second, // a synctest bubble begins at 2000
		"99999":                         30 * time.Second,
		"soon":                          0,
	}
	for value, want := range values {
		t.Run(value, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if asked++; asked == 1 {
						w.Header().Set("Retry-After", value)
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					fmt.Fprint(w, `{"data":[{"embedding":[1]}]}`)
				})
				client := MustClient(t, embed.Options{BaseURL: "http://embedder/v1", Transport: inProcess{handler}})
				began := time.Now()
				if _, err := client.Embed(t.Context(), []string{"a"}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < want || took > want+time.Second {
					t.Errorf("asked again after %v, want %v", took, want)
				}
			})
		})
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedtest.Server{Embedder: lengths{}, Delay: time.Minute}
		client := MustClient(t, embed.Options{
			BaseURL: "http://embedder/v1", Transport: inProcess{&server}, Timeout: 2 * time.Second, Attempts: 2,
		})
		began := time.Now()
		_, err := client.Embed(t.Context(), []string{"a"})
		if !errors.Is(err, embed.ErrUnreachable) || server.Requests() != 2 {
			t.Errorf("%v after %d requests, want ErrUnreachable after 2", err, server.Requests())
		}
		if took := time.Since(began); took < 4*time.Second || took > 5*time.Second {
			t.Errorf("gave up after %v, want about 4 s", took)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := client.Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want that of the context", err)
		}
	})
}

// TestBreaker: a server that keeps failing is left alone, then asked by one
// request at a time, and served again once it answers.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		broken.Store(true)
		server := embedtest.Server{Embedder: lengths{}, Fail: func(int64) int {
			if broken.Load() {
				return http.StatusInternalServerError
			}
			return 0
		}}
		client := MustClient(t, embed.Options{BaseURL: "http://embedder/v1", Transport: inProcess{&server}, Attempts: 1, Batch: 1})
		ask := func() error {
			_, err := client.Embed(t.Context(), []string{"a"})
			return err
		}
		for range 5 {
			if err := ask(); !errors.Is(err, embed.ErrStatus) {
				t.Fatalf("error is %v, want ErrStatus", err)
			}
		}
		if err := ask(); !errors.Is(err, embed.ErrOpen) || server.Requests() != 5 {
			t.Errorf("%v after %d requests, want ErrOpen after 5", err, server.Requests())
		}
		time.Sleep(6 * time.Second)
		if err := ask(); !errors.Is(err, embed.ErrStatus) {
			t.Errorf("after a rest: %v, want that it asks", err)
		}
		time.Sleep(6 * time.Second)
		if err := ask(); !errors.Is(err, embed.ErrOpen) {
			t.Errorf("in the longer rest: %v, want ErrOpen", err)
		}
		broken.Store(false)
		time.Sleep(5 * time.Second)
		// Two requests at once: one is let through, and not stopped by the other.
		if _, err := client.Embed(t.Context(), []string{"a", "b"}); err != nil && !errors.Is(err, embed.ErrOpen) {
			t.Errorf("asked again: %v", err)
		}
		if err := ask(); err != nil {
			t.Errorf("the server is back: %v", err)
		}
	})
}

// The key appears in no error, whatever the server does with it.
func TestKeyStaysSecret(t *testing.T) {
	const key = "sk-very-secret"
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "wrong key %s", r.Header.Get("Authorization"))
	})
	client := MustClient(t, embed.Options{BaseURL: MustServe(t, handler), APIKey: key})
	_, err := client.Embed(t.Context(), []string{"a"})
	if err == nil || strings.Contains(err.Error(), key) || strings.Contains(fmt.Sprintf("%+v", err), key) {
		t.Errorf("error %v tells the key", err)
	}
	unreachable := MustClient(t, embed.Options{BaseURL: "http://127.0.0.1:1/v1", APIKey: key, Attempts: 1})
	if _, err = unreachable.Embed(t.Context(), []string{"a"}); !errors.Is(err, embed.ErrUnreachable) || strings.Contains(err.Error(), key) {
		t.Errorf("error is %v, want ErrUnreachable without the key", err)
	}
}

func TestOptions(t *testing.T) {
	good := embed.Options{BaseURL: "http://localhost/v1", Model: "m"}
	tests := map[string]func(*embed.Options){
		"no address":      func(o *embed.Options) { o.BaseURL = "" },
		"no scheme":       func(o *embed.Options) { o.BaseURL = "localhost/v1" },
		"a file":          func(o *embed.Options) { o.BaseURL = "file:///etc/passwd" },
		"password in it":  func(o *embed.Options) { o.BaseURL = "http://a:b@localhost/v1" },
		"a query":         func(o *embed.Options) { o.BaseURL = "http://localhost/v1?x=1" },
		"no model":        func(o *embed.Options) { o.Model = "" },
		"dimensions":      func(o *embed.Options) { o.Dimensions = 5000 },
		"key with breaks": func(o *embed.Options) { o.APIKey = "a\r\nX: y" },
		"long space":      func(o *embed.Options) { o.Space = strings.Repeat("s", 129) },
	}
	if _, err := embed.NewClient(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			o := good
			spoil(&o)
			if _, err := embed.NewClient(o); !errors.Is(err, embed.ErrOptions) {
				t.Errorf("error is %v, want ErrOptions", err)
			}
		})
	}
}

// Many callers share a client.
func TestConcurrentUse(t *testing.T) {
	server := embedtest.Server{Embedder: lengths{}, Fail: func(n int64) int {
		if n%5 == 0 {
			return http.StatusTooManyRequests
		}
		return 0
	}}
	client := MustClient(t, embed.Options{BaseURL: MustServe(t, &server), Batch: 4, Attempts: 10})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := client.Embed(t.Context(), texts(12))
			want, _ := lengths{}.Embed(t.Context(), texts(12))
			if err != nil || !cmp.Equal(want, got) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	group.Wait()
}

// FuzzAnswer: whatever a server answers, there is a vector for each text or an
// error.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":"AACAPwAAgD8="}]}`))
	f.Add([]byte(`{"data":null}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, bytes.NewReader(answer)) })
		client := MustClient(t, embed.Options{BaseURL: "http://embedder/v1", Transport: inProcess{handler}})
		vectors, err := client.Embed(t.Context(), []string{"a", "b"})
		if err != nil {
			return
		}
		if len(vectors) != 2 || len(vectors[0]) != len(vectors[1]) || len(vectors[0]) == 0 {
			t.Fatalf("vectors are %v", vectors)
		}
		for _, x := range vectors[0] {
			if math.IsNaN(float64(x)) {
				t.Fatal("not a number")
			}
		}
	})
}

// A key that the server repeats where the message is cut does not show its
// beginning.
func TestKeyAtTheCut(t *testing.T) {
	const key = "sk-very-secret-and-quite-long"
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, strings.Repeat("x", 512-10)+key)
	})
	client := MustClient(t, embed.Options{BaseURL: MustServe(t, handler), APIKey: key})
	if _, err := client.Embed(t.Context(), []string{"a"}); err == nil || strings.Contains(err.Error(), key[:5]) {
		t.Errorf("error %v tells of the key", err)
	}
}

// Callers who leave after a moment say nothing of the server.
func TestImpatientCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedtest.Server{Embedder: lengths{}, Delay: 100 * time.Millisecond}
		client := MustClient(t, embed.Options{BaseURL: "http://embedder/v1", Transport: inProcess{&server}})
		for range 20 {
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := client.EmbedQuery(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v", err)
			}
			stop()
		}
		if _, err := client.EmbedQuery(t.Context(), "a"); err != nil {
			t.Errorf("a patient caller gets %v", err)
		}
	})
}
