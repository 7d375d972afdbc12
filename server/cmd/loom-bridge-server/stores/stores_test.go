package stores

import (
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"rocksdb:/var/lib/loom":                                              "rocksdb:/var/lib/loom",
		"postgres://anna:secret@db.example:5433/loom":                        "postgres://anna@db.example:5433/loom",
		"postgresql://anna:secret@db/loom?sslmode=disable&password=secret":   "postgresql://anna@db/loom",
		"postgres://anna:secret@db/loom?schema=team_1&application_name=mine": "postgres://anna@db/loom, schema team_1",
	} {
		p, err := Parse(text)
		if err != nil || p.String() != want {
			t.Errorf("%s: %s, %v, want %s", text, p, err, want)
		}
		if again := p.String(); strings.Contains(again, "secret") {
			t.Errorf("shown: %s", again)
		}
	}
	for _, text := range []string{
		"", "rocksdb:", "mysql://anna:secret@db/loom", "/var/lib/secret", "postgres://anna:secret@db:port/loom", "postgres://anna:sec ret%zz@db/loom",
		"postgres://anna:secret@db/loom?connections=9", "postgres://anna:secret@db/loom?connections=secret",
		"postgres://anna:secret@db/loom?schema=Bad;secret", "postgres://anna:secret@db/loom?schema=pg_secret", "postgres://anna:secret@db/loom?sslmode=secret",
	} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%q was taken", text)
			continue
		}
		if said := err.Error() + Hide(text); strings.Contains(said, "secret") && !strings.Contains(said, "sslmode") {
			t.Errorf("%q is shown: %s", text, said)
		}
	}
	if p, err := Parse("postgres://db/loom"); err != nil || p.schema != pgkv.DefaultSchema || !p.Far() {
		t.Errorf("%+v %v", p, err)
	}
}

func TestPassword(t *testing.T) {
	for text, want := range map[string]string{
		"rocksdb:/var/lib/loom":                          "",
		"postgres://db/loom":                             "",
		"postgres://anna@db/loom":                        "",
		"postgres://anna:sec%3Aret@db/loom?schema=team":  "sec:ret",
		"postgres://anna@db/loom?password=s&schema=team": "s",
	} {
		p, err := Parse(text)
		if got := p.Password(); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}
