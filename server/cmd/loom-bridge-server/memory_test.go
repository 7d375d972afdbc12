package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

func TestMemoryLanguage(t *testing.T) {
	t.Parallel()
	for _, l := range analysis.Languages() {
		c, err := load(t, nil, "--memory-language="+l.String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.language(); err != nil || got != l {
			t.Errorf("%s: %v, %v", l, got, err)
		}
	}
	c, err := load(t, map[string]string{"LOOM_BRIDGE_MEMORY_LANGUAGE": "french"})
	if got, _ := c.language(); err != nil || got != analysis.French {
		t.Errorf("from the environment: %v, %v", got, err)
	}
	for _, bad := range []string{"", "klingon", "French"} {
		_, err := load(t, nil, "--memory-language="+bad)
		var wrong *ConfigError
		if !errors.As(err, &wrong) || wrong.Field != "memory-language" ||
			wrong.Cause != "is not auto, english, danish, dutch, finnish, french, german, hungarian, italian, norwegian, portuguese, romanian, russian, spanish, swedish or turkish" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A server that is started in another language finds by that one's rules.
func TestServeInAnotherLanguage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--memory-language=english")
	save(t, p, "Les chevaux sont dans l'écurie")
	if n := hits(t, p, "cheval"); n != 0 {
		t.Errorf("%d hits in English", n)
	}
	must(t, p.Stop())
	french := MustRun(t, dir, "--memory-language=french")
	if n := hits(t, french, "cheval"); n != 1 {
		t.Errorf("%d hits in French", n)
	}
	must(t, french.Stop())
	must(t, runBriefly(t, "check", "--data-dir", filepath.Join(dir, "store"), "--memory-language=french"))
}
