package embed

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits and defaults of a client.
const (
	// DefaultBatch is how many texts one request carries: what small servers
	// take, and enough for the time of a request to count for little.
	DefaultBatch = 32
	// DefaultBatchBytes bounds the texts of one request.
	DefaultBatchBytes = 256 << 10
	// DefaultTimeout bounds one request: a batch takes a small machine without a
	// graphics card that long.
	DefaultTimeout = 30 * time.Second
	// DefaultAttempts is how often a request is sent before it counts as failed.
	DefaultAttempts = 4
	// DefaultParallel is how many requests of one call are under way at once.
	DefaultParallel = 2
	// MaxDimension bounds the numbers of a vector.
	MaxDimension = 4096
	// MaxSpaceBytes bounds the name of a space.
	MaxSpaceBytes = 128
)

// Options says which server to ask, and how.
type Options struct {
	// BaseURL is the address that /embeddings is added to, such as
	// https://api.openai.com/v1 or http://127.0.0.1:11434/v1. Required.
	BaseURL string
	// Model is the model's name, as the server knows it. Required.
	Model string
	// APIKey is sent as a bearer token. Default: none is sent.
	APIKey string
	// Dimensions asks for shorter vectors, where the model can make them, and
	// refuses others. Default: as the model makes them.
	Dimensions int
	// Space names the space of the vectors, at most 128 bytes. Default: host,
	// model and, if given, dimensions: "api.openai.com/text-embedding-3-small/256".
	// Set it to keep the space when the same model moves to another address.
	Space string
	// TextPrefix and QueryPrefix stand before each text and each query, for
	// models that are trained so ("passage: ", "query: "). Default: nothing. Name
	// another Space when they change.
	TextPrefix, QueryPrefix string
	// Batch is how many texts one request carries. Default DefaultBatch.
	Batch int
	// BatchBytes bounds the texts of one request together; a longer one goes
	// alone. Default DefaultBatchBytes.
	BatchBytes int
	// Timeout bounds one request. Default DefaultTimeout.
	Timeout time.Duration
	// Attempts is how often a request is sent before it counts as failed. Default
	// DefaultAttempts.
	Attempts int
	// Parallel is how many requests of one call are under way at once. Default
	// DefaultParallel.
	Parallel int
	// Transport carries the requests. Default: one like http.DefaultTransport.
	Transport http.RoundTripper
}

// check refuses what is of no use and fills in the defaults.
func (o *Options) check() (*url.URL, error) {
	address, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https":
		return nil, fmt.Errorf("%w: base URL is no address of a web server", ErrOptions)
	case address.User != nil || address.RawQuery != "" || address.Fragment != "":
		return nil, fmt.Errorf("%w: base URL holds more than an address and a path", ErrOptions)
	case o.Model == "":
		return nil, fmt.Errorf("%w: no model", ErrOptions)
	case o.Dimensions < 0 || o.Dimensions > MaxDimension:
		return nil, fmt.Errorf("%w: %d dimensions, not from 1 to %d", ErrOptions, o.Dimensions, MaxDimension)
	case strings.ContainsAny(o.APIKey, "\r\n"):
		return nil, fmt.Errorf("%w: API key holds a line break", ErrOptions)
	}
	o.Batch = cmp.Or(o.Batch, DefaultBatch)
	o.BatchBytes = cmp.Or(o.BatchBytes, DefaultBatchBytes)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Attempts = cmp.Or(o.Attempts, DefaultAttempts)
	o.Parallel = cmp.Or(o.Parallel, DefaultParallel)
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	if o.Space == "" {
		o.Space = address.Hostname() + "/" + o.Model
		if o.Dimensions > 0 {
			o.Space += fmt.Sprintf("/%d", o.Dimensions)
		}
	}
	if len(o.Space) > MaxSpaceBytes {
		return nil, fmt.Errorf("%w: space has %d bytes, more than %d", ErrOptions, len(o.Space), MaxSpaceBytes)
	}
	return address.JoinPath("embeddings"), nil
}
