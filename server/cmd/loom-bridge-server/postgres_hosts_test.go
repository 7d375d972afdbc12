package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
)

// An address names the hosts of a cluster: the server uses the one that takes writes, whichever
// it is, and not a standby that comes first. With a standby alone it does not start, and says
// why.
//
// Z46
func TestStoreOfSeveralHosts(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	standby, err := pgtest.StartStandby(store)
	must(t, err)
	defer standby.Close()
	err = runBriefly(t, "--store", standby.Address, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir(), "--workspace", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "is a standby") {
		t.Errorf("a standby alone: %v", err)
	}
	both, err := url.Parse(store)
	must(t, err)
	both.Host = standby.Host() + "," + both.Host
	p := MustBridge(t, both.String(), "a")
	save(t, p, "tides follow the moon")
	if n := hits(t, p, "moon"); n != 1 {
		t.Errorf("%d hits", n)
	}
}
