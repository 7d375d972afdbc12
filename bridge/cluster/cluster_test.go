package cluster

import (
	"os"
	"testing"
)

// What listens on all addresses is looked for where its server is.
func TestReached(t *testing.T) {
	t.Parallel()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ listening, server, want string }{
		{"10.0.0.7:6222", "bridge-1:50051", "10.0.0.7:6222"},
		{"127.0.0.1:6222", "", "127.0.0.1:6222"},
		{"[::]:6222", "bridge-1.bridges:50051", "bridge-1.bridges:6222"},
		{"0.0.0.0:6222", "[fd00::7]:50051", "[fd00::7]:6222"},
		{"[::]:6222", "0.0.0.0:50051", name + ":6222"},
		{"[::]:6222", ":50051", name + ":6222"},
		{"[::]:6222", "", name + ":6222"},
	} {
		if got := reached(c.listening, c.server); got != c.want {
			t.Errorf("%s of a server at %q: %s, want %s", c.listening, c.server, got, c.want)
		}
	}
}
