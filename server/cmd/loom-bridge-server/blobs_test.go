package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

// K51
func TestBlobSettings(t *testing.T) {
	c := DefaultConfig()
	if !c.WriteStoreContent {
		t.Error("what was written is not kept")
	}
	c.BlobTTL, c.BlobGCBytes = " shell=1h, note=forever,", 7
	must(t, c.Validate())
	want := blob.Options{
		TTL: map[string]time.Duration{"shell": time.Hour, "note": -1}, CollectEvery: 10 * time.Minute,
		CollectBytes: 7, MaxOwnerBytes: 10 << 30,
	}
	got := c.blobs()
	if got.MaxOwnerBytes != want.MaxOwnerBytes || got.CollectBytes != want.CollectBytes || got.CollectEvery != want.CollectEvery {
		t.Errorf("options %+v", got)
	}
	if diff := cmp.Diff(want.TTL, got.TTL); diff != "" {
		t.Error(diff)
	}
	c.BlobGCInterval, c.BlobGCBytes, c.BlobMaxBytes = 0, 0, 0
	if off := c.blobs(); off.CollectEvery >= 0 || off.CollectBytes >= 0 || off.MaxOwnerBytes >= 0 {
		t.Errorf("zero does not turn off: %+v", off)
	}
	for field, spoil := range map[string]func(*Config){
		"blob-ttl":         func(c *Config) { c.BlobTTL = "shell=soon" },
		"blob-gc-interval": func(c *Config) { c.BlobGCInterval = -1 },
		"blob-gc-bytes":    func(c *Config) { c.BlobGCBytes = -1 },
		"blob-max-bytes":   func(c *Config) { c.BlobMaxBytes = -1 },
		"max-result-bytes": func(c *Config) { c.MaxResultBytes = 0 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if bad, ok := errors.AsType[*ConfigError](c.Validate()); !ok || bad.Field != field {
			t.Errorf("%s: %v", field, c.Validate())
		}
	}
	for _, text := range []string{"shell", "shell=0s", "shell=-1h", "report:1h", "x=1h", "=1h"} {
		c.BlobTTL = text
		if c.Validate() == nil {
			t.Errorf("%q passes", text)
		}
	}
}
