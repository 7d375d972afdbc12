package builtin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

const (
	// Name is the model's name, as people read it.
	Name = "use-multilingual-3"
	// FileName is the name of the model's file.
	FileName = Name + ".model"
	// Dimensions is how many numbers a vector has.
	Dimensions = 512
	// space names the vectors. Another file or another way to cut texts needs another.
	space = "builtin/" + Name + "/512"
	// maxBytes bounds how much of a text is read, and maxPassages how many passages of
	// passageTokens pieces of that count: more would blur what the text is about, and cost
	// a core half a second.
	maxBytes      = 8 << 10
	passageTokens = 256
	maxPassages   = 4
)

// ErrFile: the model's file is missing, damaged, or of another version of the server.
var ErrFile = errors.New("builtin: unusable file of the model")

// Find returns the model's file: next to a binary, or in ../share/loom-bridge relative to
// it; empty if there is none.
func Find(binary string) string {
	if real, err := filepath.EvalSymlinks(binary); err == nil {
		binary = real
	}
	folder := filepath.Dir(binary)
	for _, path := range []string{filepath.Join(folder, FileName), filepath.Join(folder, "..", "share", "loom-bridge", FileName)} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Model is an embedder. It is safe for concurrent use.
type Model struct {
	path string

	mu      sync.Mutex // guards loading
	network *network   // nil until the first use

	background sync.Mutex // held by the one thread that embeds records
}

var _ embed.QueryEmbedder = (*Model)(nil)

// New returns the model of a file, and reads no more of it than its head. ErrFile says
// what is wrong with it.
func New(path string) (*Model, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer file.Close()
	if _, err := readHead(file); err != nil {
		return nil, err
	}
	return &Model{path: path}, nil
}

// Space names what the vectors can be compared with.
func (*Model) Space() string { return space }

// EmbedQuery returns the vector of a text that is searched for, on the caller's thread.
//
// Errors: ErrFile together with embed.ErrUnreachable, or that of ctx.
func (m *Model) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	n, err := m.load()
	if err != nil {
		return nil, err
	}
	return n.vector(ctx, text)
}

// Embed returns one vector for each text, on a thread that yields to all others. Calls
// wait for each other. It returns the errors of EmbedQuery.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	m.background.Lock()
	defer m.background.Unlock()
	vectors := make([][]float32, len(texts))
	var err error
	var running sync.WaitGroup
	running.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		yield()
		var n *network
		if n, err = m.load(); err != nil {
			return
		}
		for i, text := range texts {
			if vectors[i], err = n.vector(ctx, text); err != nil {
				return
			}
		}
	})
	running.Wait()
	if err != nil {
		return nil, err
	}
	return vectors, nil
}

// load maps the file, if that is not done yet.
func (m *Model) load() (*network, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.network != nil {
		return m.network, nil
	}
	parts, err := openFile(m.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", embed.ErrUnreachable, err)
	}
	m.network = newNetwork(parts)
	return m.network, nil
}

// vector returns the mean direction of a text's first passages.
func (n *network) vector(ctx context.Context, text string) ([]float32, error) {
	ids := n.pieces.cut(text[:min(len(text), maxBytes)])
	sum := make([]float32, Dimensions)
	for passage := range maxPassages {
		begin := passage * passageTokens
		if begin >= len(ids) {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, x := range n.passage(ids[begin:min(begin+passageTokens, len(ids))]) {
			sum[i] += x
		}
	}
	normalize(sum)
	return sum, nil
}

// normalize makes a vector one long.
func normalize(v []float32) {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	by := float32(1 / math.Sqrt(max(square, epsilon)))
	for i := range v {
		v[i] *= by
	}
}
