package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// Embedder is the server that makes vectors of texts. Without an address there is
// none, and memory is searched by words and by the vectors that callers give.
type Embedder struct {
	// URL is the address of an OpenAI-compatible API, such as
	// http://127.0.0.1:11434/v1 of Ollama. Default none.
	URL string `koanf:"embedder-url"`
	// Model is the model's name there. Required with URL.
	Model string `koanf:"embedder-model"`
	// Key is its API key. Default none is sent.
	Key string `koanf:"embedder-key"`
	// Dimensions asks for vectors of that many numbers. Default: as the model
	// makes them.
	Dimensions int `koanf:"embedder-dimensions"`
	// Space names the space of the vectors. Default: host, model and dimensions.
	Space string `koanf:"embedder-space"`
	// TextPrefix and QueryPrefix stand before texts and queries. Default none.
	TextPrefix  string `koanf:"embedder-text-prefix"`
	QueryPrefix string `koanf:"embedder-query-prefix"`
	// Batch is how many texts one request carries. Default 32.
	Batch int `koanf:"embedder-batch"`
	// Timeout bounds one request. Default 30 s.
	Timeout time.Duration `koanf:"embedder-timeout"`
}

func defaultEmbedder() Embedder {
	return Embedder{Batch: embed.DefaultBatch, Timeout: embed.DefaultTimeout}
}

func embedderFlags(f *pflag.FlagSet, d Embedder) {
	f.String("embedder-url", d.URL, "OpenAI-compatible API that makes vectors of texts, such as http://127.0.0.1:11434/v1 (none: words only)")
	f.String("embedder-model", d.Model, "model to use there, such as nomic-embed-text")
	f.String("embedder-key", d.Key, "its API key; better given in the environment")
	f.Int("embedder-dimensions", d.Dimensions, "numbers of a vector, where the model lets one choose (0: as it makes them)")
	f.String("embedder-space", d.Space, "name of the space of the vectors (default: host/model/dimensions)")
	f.String("embedder-text-prefix", d.TextPrefix, "what stands before each text, such as \"passage: \"")
	f.String("embedder-query-prefix", d.QueryPrefix, "what stands before each query, such as \"query: \"")
	f.Int("embedder-batch", d.Batch, "texts of one request")
	f.Duration("embedder-timeout", d.Timeout, "longest time of one request")
}

// open returns the embedder, or nil when there is none.
func (e Embedder) open() (embed.Embedder, error) {
	switch {
	case e.URL == "" && e == defaultEmbedder():
		return nil, nil
	case e.URL == "":
		return nil, &ConfigError{"embedder-url", e.URL, "is needed by the other settings of the embedder"}
	case e.Model == "":
		return nil, &ConfigError{"embedder-model", e.Model, "is required with --embedder-url"}
	case e.Batch <= 0:
		return nil, &ConfigError{"embedder-batch", e.Batch, "must be at least 1"}
	case e.Timeout <= 0:
		return nil, &ConfigError{"embedder-timeout", e.Timeout, "must be more than 0"}
	}
	client, err := embed.NewClient(embed.Options{
		BaseURL: e.URL, Model: e.Model, APIKey: e.Key, Dimensions: e.Dimensions, Space: e.Space,
		TextPrefix: e.TextPrefix, QueryPrefix: e.QueryPrefix, Batch: e.Batch, Timeout: e.Timeout,
	})
	if errors.Is(err, embed.ErrOptions) {
		return nil, &ConfigError{"embedder-url", e.URL, err.Error()}
	}
	return client, err
}

// checkEmbedder checks its settings.
func (c Config) checkEmbedder() error {
	_, err := c.Embedder.open()
	return err
}
