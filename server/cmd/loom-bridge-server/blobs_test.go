package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// K51
func TestBlobSettings(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, "--blob-ttl= shell=1h, note=forever,")
	must(t, err)
	if diff := cmp.Diff(map[string]time.Duration{"shell": time.Hour, "note": -1}, c.Blobs.TTL); diff != "" {
		t.Error(diff)
	}
	c, err = load(t, nil, "--blob-max-bytes=0")
	must(t, err)
	if off := c.Blobs; off.MaxOwnerBytes >= 0 {
		t.Errorf("zero does not turn off: %+v", off)
	}
	for _, arg := range []string{
		"--blob-max-bytes=-1",
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
