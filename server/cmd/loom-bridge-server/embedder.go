package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
	"github.com/loom-bridge/loom-bridge/memory/embed"
	"github.com/loom-bridge/loom-bridge/memory/embed/builtin"
	"github.com/loom-bridge/loom-bridge/memory/embed/chosen"
	"github.com/loom-bridge/loom-bridge/memory/embed/nearby"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// checkEmbedder checks that its settings make one. What listens here, and whether the server
// has its own model, is seen when it starts.
func (c Config) checkEmbedder() error {
	if c.Embedder.BaseURL == "" && (c.EmbedderUse == embedderAuto || c.Embedder == NewConfig().Embedder) {
		return nil
	}
	_, err := c.embedder()
	return err
}

// Words of the setting that says which embedder is used.
const (
	embedderAuto    = "auto"
	embedderBuiltin = "builtin"
	embedderOff     = "off"
)

// noModel says why the server's own model is not used, and what to do.
const noModel = builtin.FileName + " is neither next to the binary nor in ../share/loom-bridge (`make model` fetches it)"

// embedder returns the embedder, or nil when there is none.
func (c Config) embedder() (embed.Embedder, error) {
	e, none := c.Embedder, NewConfig().Embedder
	switch {
	case c.EmbedderUse == embedderOff && e == none:
		return nil, nil
	case c.EmbedderUse == embedderOff:
		return nil, &ConfigError{"embedder", c.EmbedderUse, "leaves no use for the other settings of an embedder"}
	case e == none && c.EmbedderUse == embedderBuiltin:
		return c.model()
	case e.BaseURL == "" && e != none:
		return nil, &ConfigError{"embedder-url", e.BaseURL, "is needed by the other settings of the embedder, unless one listens here"}
	case e.BaseURL == "":
		// Without the model, words have to do.
		if model, err := c.model(); err == nil && c.EmbedderUse == embedderAuto {
			return model, nil
		}
		return nil, nil
	case e.Model == "":
		return nil, &ConfigError{"embedder-model", e.Model, "is required with --embedder-url"}
	}
	client, err := embed.NewClient(e)
	if errors.Is(err, embed.ErrOptions) {
		return nil, &ConfigError{"embedder-url", e.BaseURL, err.Error()}
	}
	return client, err
}

// model returns the server's own model, of which no more is read than the head.
func (c Config) model() (embed.Embedder, error) {
	path := c.ModelFile
	if path == "" {
		binary, err := os.Executable()
		if err != nil {
			return nil, err
		}
		path = builtin.Find(binary)
	}
	if path == "" {
		return nil, &ConfigError{"embedder", c.EmbedderUse, noModel}
	}
	model, err := builtin.New(path)
	if err != nil {
		return nil, &ConfigError{"embedder", c.EmbedderUse, err.Error() + "; `make model` fetches it"}
	}
	return model, nil
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
func (c Config) findEmbedder(ctx context.Context) Config {
	if c.EmbedderUse != embedderAuto || c.Embedder.BaseURL != "" {
		return c
	}
	found, ok := nearby.Find(ctx, c.hosts())
	if ok {
		c.Embedder.BaseURL = found.BaseURL
		if c.Embedder.Model == "" {
			c.Embedder.Model = found.Model
		}
	}
	return c
}

// chooseEmbedder returns the embedder, nil for none, and the settings with where it is. An
// embedder that the server chooses by itself stays with the store: vectors of another model
// could not be compared with the existing ones.
func (c Config) chooseEmbedder(ctx context.Context, engine kv.Engine) (Config, embed.Embedder, error) {
	before, known, err := chosen.Load(ctx, engine)
	if err != nil {
		return c, nil, err
	}
	named := c.Embedder.BaseURL != ""
	if c = c.keepEmbedder(before, known); c.Embedder.BaseURL == "" && !(known && c.keepsModel(before)) {
		c = c.findEmbedder(ctx)
	}
	e, err := c.embedder()
	switch now := (chosen.Embedder{BaseURL: c.Embedder.BaseURL, Model: c.Embedder.Model}); {
	case err != nil || e == nil || known && now == before || named && !known:
		return c, e, err
	case named:
		return c, e, chosen.Forget(ctx, engine)
	default:
		return c, e, now.Store(ctx, engine)
	}
}

// keepEmbedder takes the server that was chosen before, unless one is named.
func (c Config) keepEmbedder(before chosen.Embedder, known bool) Config {
	if known && c.EmbedderUse == embedderAuto && c.Embedder.BaseURL == "" && before.BaseURL != "" {
		c.Embedder.BaseURL, c.Embedder.Model = before.BaseURL, cmp.Or(c.Embedder.Model, before.Model)
	}
	return c
}

// keepsModel reports whether the server's own model was chosen before, and is there.
func (c Config) keepsModel(before chosen.Embedder) bool {
	_, err := c.model()
	return before == chosen.Embedder{} && c.Embedder.Model == "" && err == nil
}

// embedderLine says which embedder is used, or why none is.
func (c Config) embedderLine(e embed.Embedder) string {
	switch _, err := c.model(); {
	case e != nil && c.Embedder.BaseURL == "":
		return builtin.Name + ", in the server itself"
	case e != nil:
		place, err := url.Parse(c.Embedder.BaseURL)
		if err != nil {
			return e.Space()
		}
		// Only the host: the rest may hold a key.
		return fmt.Sprintf("%s at %s://%s", c.Embedder.Model, place.Scheme, place.Host)
	case c.EmbedderUse == embedderAuto && err != nil:
		var refused *ConfigError
		why := err.Error()
		if errors.As(err, &refused) {
			why = refused.Cause
		}
		return "none: nothing with a model for vectors listens at " + c.hosts() + ", and " + why + "; memory is searched by words"
	}
	return "off: memory is searched by words"
}

// tellEmbedder says which embedder a server of these settings uses.
func (c Config) tellEmbedder(ctx context.Context, out io.Writer) {
	c = c.findEmbedder(ctx)
	switch e, err := c.embedder(); {
	case err != nil:
		fmt.Fprintf(out, "embedder: %v\n", err)
	default:
		fmt.Fprintf(out, "embedder: %s\n", c.embedderLine(e))
	}
}
