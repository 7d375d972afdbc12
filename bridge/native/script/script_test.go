package script_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loom-bridge/loom-bridge/bridge/native/script"
)

// However the output is cut into pieces, the part before the mark is passed on whole.
func TestSplitter(t *testing.T) {
	const mark = "\x00loom:M\x00"
	for name, tt := range map[string]struct {
		out, printed string
		ok           bool
		err          error
	}{
		"a reply":             {"a\nb" + mark + `{"ok":true}`, "a\nb", true, nil},
		"nothing printed":     {mark + `{"ok":true}`, "", true, nil},
		"what looks like one": {"\x00loom:" + "\x00loom:N" + mark + `{"ok":true}`, "\x00loom:\x00loom:N", true, nil},
		"none":                {"a\x00lo", "a\x00lo", false, script.ErrNoReply},
		"no JSON":             {"a" + mark + "{", "a", false, script.ErrNoReply},
		"too long":            {mark + `{"ok":true,"result":"` + strings.Repeat("x", script.MaxReplyBytes) + `"}`, "", false, script.ErrTooLong},
	} {
		for _, whole := range []bool{true, false} {
			var printed bytes.Buffer
			s := script.NewSplitter(mark, &printed)
			var err error
			if whole || len(tt.out) > 1<<20 {
				_, err = s.Write([]byte(tt.out))
			} else {
				_, err = io.Copy(s, iotest.OneByteReader(strings.NewReader(tt.out)))
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Reply()
			if r.OK != tt.ok || !errors.Is(err, tt.err) || printed.String() != tt.printed {
				t.Errorf("%s: got %v, %v, printed %q", name, r.OK, err, printed.String())
			}
		}
	}
}

// The tenant that holds most makes room; what one tenant keeps another one never gets.
func TestCacheShares(t *testing.T) {
	c := script.NewCache(10_000)
	entry := script.Entry{Values: make([]byte, 1000)}
	key := func(i byte) script.Key { return script.KeyOf([]byte{i}) }
	c.Put("small", key(0), entry)
	for i := range byte(50) {
		c.Put("large", key(i), entry)
	}
	if _, ok := c.Get("small", key(0)); !ok {
		t.Error("the tenant with one entry has lost it")
	}
	if _, ok := c.Get("large", key(49)); !ok {
		t.Error("the newest entry is lost")
	}
	if _, ok := c.Get("large", key(0)); ok {
		t.Error("the oldest entry is still there")
	}
	if _, ok := c.Get("small", key(49)); ok {
		t.Error("a tenant gets another one's")
	}
	c.Put("other", key(1), script.Entry{Values: make([]byte, 20_000)})
	if _, ok := c.Get("other", key(1)); ok {
		t.Error("an entry over the limit is kept")
	}
	var none *script.AnswerCache
	none.Put("a", key(0), entry)
	if _, ok := none.Get("a", key(0)); ok || script.NewCache(0) != nil {
		t.Error("no cache keeps something")
	}
}
