package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

// K51
func TestBlobSettings(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, "--blob-ttl= shell=1h, note=forever,", "--blob-gc-bytes=7")
	must(t, err)
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
	c, err = load(t, nil, "--blob-gc-interval=0", "--blob-gc-bytes=0", "--blob-max-bytes=0", "--blob-search-time=0")
	must(t, err)
	if off := c.blobs(); off.CollectEvery >= 0 || off.CollectBytes >= 0 || off.MaxOwnerBytes >= 0 || off.SearchTime >= 0 {
		t.Errorf("zero does not turn off: %+v", off)
	}
	for _, arg := range []string{
		"--blob-gc-interval=-1s", "--blob-gc-bytes=-1", "--blob-max-bytes=-1", "--blob-search-time=-1s",
		"--blob-ttl=shell=soon", "--blob-ttl=shell", "--blob-ttl=shell=0s", "--blob-ttl=shell=-1h", "--blob-ttl=report:1h", "--blob-ttl=x=1h", "--blob-ttl==1h",
		"--max-result-bytes=0", "--max-result-bytes=9000000000000",
	} {
		field, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		_, err := load(t, nil, arg)
		if bad, ok := errors.AsType[*ConfigError](err); !ok || bad.Field != field {
			t.Errorf("%s: %v", arg, err)
		}
	}
}
