package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/server/auth"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// plainToken is a credential with its token in the open.
const plainToken = "[[credential]]\ntoken = \"secret\"\ntenant = \"a\"\nagents = [\"*\"]\n"

// hash is one of a token.
var hash = strings.Repeat("ab", 32)

func TestLoadCredentialsErrors(t *testing.T) {
	one := func(fields string) string { return "[[credential]]\n" + fields + "\n" }
	token := `token_sha256 = "` + hash + `"` + "\n"
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "no client could call"},
		{"no TOML", "[[credential", "toml"},
		{"unknown key", one(token + `tenant = "a"` + "\nagent = [\"b\"]"), `line 4: unknown key "credential.agent"`},
		{"no tenant", one(token + `agents = ["a"]`), "credential 1: tenant"},
		{"tenant is a path", one(token + `tenant = "../a"` + "\n" + `agents = ["a"]`), "tenant"},
		{"no agents", one(token + `tenant = "a"`), "agents"},
		{"star in the middle", one(token + `tenant = "a"` + "\n" + `agents = ["a*b"]`), `"a*b"`},
		{"no way in", one(`tenant = "a"` + "\n" + `agents = ["a"]`), "exactly one"},
		{"two ways in", one(token + `subject = "s"` + "\n" + `tenant = "a"` + "\n" + `agents = ["a"]`), "exactly one"},
		{"short hash", one(`token_sha256 = "abcd"` + "\n" + `tenant = "a"` + "\n" + `agents = ["a"]`), "64 hex digits"},
		{"token twice", plainToken + plainToken, "twice"},
		{"expiry without a zone", one(token + `tenant = "a"` + "\n" + `agents = ["a"]` + "\nexpires = 2027-01-01T00:00:00"), "is not a time with a zone, such as 2027-01-01T00:00:00Z"},
		{"expiry as text", one(token + `tenant = "a"` + "\n" + `agents = ["a"]` + "\nexpires = \"tomorrow\""), "credential 1: expires: tomorrow is not a time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "callers.toml")
			must(t, os.WriteFile(path, []byte(test.text), 0o600))
			_, err := auth.LoadCredentials(path)
			if !errors.Is(err, auth.ErrCredentials) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err = %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestPlainTokensMustBePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "callers.toml")
	must(t, os.WriteFile(path, []byte(plainToken), 0o600))
	must(t, os.Chmod(path, 0o640))
	if _, err := auth.LoadCredentials(path); !errors.Is(err, auth.ErrCredentials) || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("err = %v", err)
	}
	hashed := "[[credential]]\ntoken_sha256 = \"" + hash + "\"\ntenant = \"a\"\nagents = [\"*\"]\n"
	must(t, os.WriteFile(path, []byte(hashed), 0o600))
	if _, err := auth.LoadCredentials(path); err != nil {
		t.Errorf("hashes may be read by others: %v", err)
	}
	if _, err := auth.LoadCredentials(t.TempDir()); !errors.Is(err, auth.ErrCredentials) {
		t.Errorf("a directory: %v", err)
	}
}

// Whoever can write the file can give themselves any tenant, so hashes alone
// are not enough.
func TestCredentialsMustNotBeWritableByOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "callers.toml")
	must(t, os.WriteFile(path, []byte("[[credential]]\nsubject = \"x\"\ntenant = \"a\"\nagents = [\"*\"]\n"), 0o600))
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o664: false, 0o646: false} {
		must(t, os.Chmod(path, mode))
		if _, err := auth.LoadCredentials(path); good != (err == nil) || !good && !errors.Is(err, auth.ErrCredentials) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
