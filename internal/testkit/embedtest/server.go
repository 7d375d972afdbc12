package embedtest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// maxRequestBytes bounds a request, as servers do.
const maxRequestBytes = 16 << 20

// Server serves the vectors of an embedder as POST /v1/embeddings, in the OpenAI
// protocol. Set the fields before it serves; only the counters change then.
type Server struct {
	// Embedder makes the vectors.
	Embedder embed.Embedder
	// Delay is how long each request takes. Default none.
	Delay time.Duration
	// Fail, if set, is asked before each request, numbered from 1, and returns the
	// status to refuse it with, or 0 to answer it.
	Fail func(request int64) int
	// MaxTextBytes refuses a request with a longer text, as models do whose
	// context is short. Default: no bound.
	MaxTextBytes int
	// Base64 answers with vectors as base64. Default: as lists.
	Base64 bool
	// Backwards answers in reverse order, which the protocol allows.
	Backwards bool

	requests, texts atomic.Int64
}

var _ http.Handler = (*Server)(nil)

// Requests is how many requests came.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Texts is how many texts were embedded.
func (s *Server) Texts() int64 { return s.texts.Load() }

// item is one vector of an answer.
type item struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	if !s.delay(r) {
		return
	}
	if s.Fail != nil {
		if status := s.Fail(n); status != 0 {
			refuse(w, status, "refused, as the test wants")
			return
		}
	}
	var in struct {
		Model string
		Input []string
	}
	switch err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&in); {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings":
		refuse(w, http.StatusNotFound, "there is only POST /v1/embeddings")
		return
	case err != nil || in.Model == "" || len(in.Input) == 0:
		refuse(w, http.StatusBadRequest, "request without model and input")
		return
	}
	for _, text := range in.Input {
		if s.MaxTextBytes > 0 && len(text) > s.MaxTextBytes {
			refuse(w, http.StatusBadRequest, "text is longer than the context")
			return
		}
	}
	vectors, err := s.Embedder.Embed(r.Context(), in.Input)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.texts.Add(int64(len(vectors)))
	s.answer(w, in.Model, vectors)
}

// delay waits; false when the client went away.
func (s *Server) delay(r *http.Request) bool {
	if s.Delay <= 0 {
		return true
	}
	timer := time.NewTimer(s.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (s *Server) answer(w http.ResponseWriter, model string, vectors [][]float32) {
	items := make([]item, len(vectors))
	for i, v := range vectors {
		place := i
		if s.Backwards {
			place = len(vectors) - 1 - i
		}
		items[place] = item{"embedding", i, v}
		if s.Base64 {
			items[place].Embedding = encodeBase64(v)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": model, "data": items})
}

func encodeBase64(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message}})
}
