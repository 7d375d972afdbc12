package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embed/nearby"
)

// checkEmbedder checks that its settings make one.
func (c Config) checkEmbedder() error {
	_, err := c.embedder()
	return err
}

// embedder returns the embedder, or nil when there is none.
func (c Config) embedder() (embed.Embedder, error) {
	e, none := c.Embedder, NewConfig().Embedder
	switch {
	case e.BaseURL == "" && e == none:
		return nil, nil
	case e.BaseURL == "" && c.EmbedderFind != "":
		return nil, nil // until one is found
	case e.BaseURL == "":
		return nil, &ConfigError{"embedder-url", e.BaseURL, "is needed by the other settings of the embedder"}
	case e.Model == "":
		return nil, &ConfigError{"embedder-model", e.Model, "is required with --embedder-url"}
	}
	client, err := embed.NewClient(e)
	if errors.Is(err, embed.ErrOptions) {
		return nil, &ConfigError{"embedder-url", e.BaseURL, err.Error()}
	}
	return client, err
}

// memory says how long-term memory works.
func (c Config) memory(language analysis.Language, embedder embed.Embedder) memory.Options {
	o := memory.Options{Language: language, Embedder: embedder, VectorWeight: c.VectorWeight, Hold: c.HoldOrigins, Redact: c.Redact, MaxRecords: c.MemoryLimit, MaxArchived: c.ArchiveLimit, CountAccesses: c.CountAccesses}
	if o.MaxVersions = c.MaxVersions; o.MaxVersions == 0 {
		o.MaxVersions = -1 // zero is the store's default
	}
	if c.Duplicates == duplicatesReinforce {
		o.Duplicates = memory.ReinforceDuplicates
	}
	return o
}

// hosts is where an embedder is looked for.
func (c Config) hosts() string { return cmp.Or(c.EmbedderHosts, nearby.Hosts) }

// findEmbedder asks this machine for an embedder if --embedder says so and none is named.
func (c Config) findEmbedder(ctx context.Context) (Config, nearby.Server) {
	if c.EmbedderFind == "" || c.Embedder.BaseURL != "" {
		return c, nearby.Server{}
	}
	found, ok := nearby.Find(ctx, c.hosts())
	if ok {
		c.Embedder.BaseURL = found.BaseURL
		if c.Embedder.Model == "" {
			c.Embedder.Model = found.Model
		}
	}
	return c, found
}

// tellEmbedder says which embedder --embedder auto takes.
func (c Config) tellEmbedder(ctx context.Context, out io.Writer) {
	set := c.Embedder.BaseURL != ""
	c.EmbedderFind = "auto"
	switch c, found := c.findEmbedder(ctx); {
	case set:
		fmt.Fprintf(out, "embedder: %s, as --embedder-url says\n", c.Embedder.Model)
	case found.Kind != "":
		fmt.Fprintf(out, "embedder: %s with %s at %s listens here; --embedder auto takes it\n", found.Kind, found.Model, found.BaseURL)
	default:
		fmt.Fprintf(out, "embedder: none listens at %s; memory is searched by words\n", c.hosts())
	}
}
