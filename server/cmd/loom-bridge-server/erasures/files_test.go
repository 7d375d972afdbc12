package erasures

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "erase.pem")
	key, err := openKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new key has mode %v, %v", info.Mode(), err)
	}
	again, err := openKey(path)
	if err != nil || !again.Equal(key) {
		t.Errorf("the key is another the second time, %v", err)
	}
	signer, err := readSigner(path)
	if err != nil || !signer.Equal(key.Public()) {
		t.Errorf("the signer is another, %v", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "public.pem")
	if err := os.WriteFile(other, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600); err != nil {
		t.Fatal(err)
	}
	if signer, err = readSigner(other); err != nil || !signer.Equal(key.Public()) {
		t.Errorf("the public part is of another, %v", err)
	}
	if _, err := openKey(other); err == nil {
		t.Error("a public key signs")
	}
	if signer, err = readSigner(""); signer != nil || err != nil {
		t.Errorf("%v, %v", signer, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := openKey(path); err == nil {
			t.Errorf("a key of mode %#o signs", mode)
		}
	}
}

// TestNoKeys: what is no key of the right kind is refused, and stays as it is.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	foreignPublic, err := x509.MarshalPKIXPublicKey(curve.Public())
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	for name, text := range map[string]string{
		"empty": "", "no PEM": "key", "cut": block("PRIVATE KEY", foreign[:len(foreign)/2]), "another kind": block("PRIVATE KEY", foreign),
		"another public kind": block("PUBLIC KEY", foreignPublic), "a cut public one": block("PUBLIC KEY", foreignPublic[:9]),
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := openKey(path); err == nil {
			t.Errorf("%s: %v signs", name, key)
		}
		if key, err := readSigner(path); err == nil || key != nil {
			t.Errorf("%s: %v must have signed, %v", name, key, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%s: the file holds %q, %v", name, after, err)
		}
	}
}

// TestCertificates: one is read back as it was written; a file that is cut, changed or too
// large is none.
func TestCertificates(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &erasure.Certificate{Format: 1, Subject: erasure.Subject{Kind: erasure.Agent, Tenant: "t", ID: "a"}, Found: 7}
	c.State()
	if err := c.Sign(key); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.json")
	if err := writeJSON(path, c); err != nil {
		t.Fatal(err)
	}
	back, err := readCertificate(path)
	if err != nil || back.Verify(key.Public().(ed25519.PublicKey)) != nil || back.Found != 7 || back.Subject != c.Subject {
		t.Errorf("%+v, %v", back, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"empty": "", "cut": string(text[:len(text)/2]), "no object": "[]"} {
		if err := writeFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if _, err := readCertificate(path); err == nil {
			t.Errorf("%s: it is a certificate", name)
		}
	}
	if err := writeFile(path, []byte(strings.Replace(string(text), `"found": 7`, `"found": 8`, 1))); err != nil {
		t.Fatal(err)
	}
	if back, err = readCertificate(path); err == nil && back.Verify(nil) == nil {
		t.Error("a changed certificate is whole")
	}
	if err := os.Truncate(path, maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := readCertificate(path); err == nil {
		t.Error("a file of any size is read")
	}
	if _, err := readCertificate(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestWholeOrNot: a file that can't be written leaves nothing.
func TestWholeOrNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	if err := os.MkdirAll(filepath.Join(path, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("x")); err == nil {
		t.Error("a folder is replaced")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestCarry: folders in a store come along with their modes; its own files, and the copy of a
// backup, do not.
func TestCarry(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	for name, mode := range map[string]os.FileMode{"keys/deep/secret": 0o400, "keys/open": 0o644, "backup/copy": 0o600, "000012.sst": 0o600} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(from, "keys", "deep"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := carry(from, to); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		got = append(got, strings.TrimPrefix(path, to)+" "+info.Mode().Perm().String())
		return err
	})
	want := "/keys -rwx------, /keys/deep -r-x------, /keys/deep/secret -r--------, /keys/open -rw-r--r--"
	if all := strings.Join(got[1:], ", "); err != nil || all != want {
		t.Errorf("%s, %v; want %s", all, err, want)
	}
	if err := carry(from+"x", to); err == nil {
		t.Error("a store that is not there is carried")
	}
	_ = os.Chmod(filepath.Join(from, "keys", "deep"), 0o700)
	_ = os.Chmod(filepath.Join(to, "keys", "deep"), 0o700)
}

// TestInterrupted: counts of a run that was killed are never lowered by the next one, and an
// erasure that was begun for a certificate keeps others from it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	before := map[string]erasure.Tally{"a": {Erased: 5, Changed: 1, Bytes: 50, Kept: 9}, "gone": {Erased: 1}}
	got := most(before, map[string]erasure.Tally{"a": {Erased: 0, Changed: 2, Bytes: 0, Kept: 7}, "new": {Erased: 3}})
	if got["a"] != (erasure.Tally{Erased: 5, Changed: 2, Bytes: 50, Kept: 7}) || got["new"].Erased != 3 {
		t.Errorf("%+v", got)
	}
	refused := errors.New("refused")
	e := &erasing{Options: Options{Refuse: func(string, string, string) error { return refused }}, out: filepath.Join(t.TempDir(), "c.json")}
	e.subject = erasure.Subject{Kind: erasure.Agent, Tenant: "t", ID: "a"}
	c, err := e.earlier()
	if err != nil || c.Subject != e.subject || c.Found != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	c.Found = 7
	if err := writeJSON(e.out+partSuffix, c); err != nil {
		t.Fatal(err)
	}
	if c, err = e.earlier(); err != nil || c.Found != 7 {
		t.Errorf("%+v, %v", c, err)
	}
	e.subject.ID = "b"
	if _, err = e.earlier(); !errors.Is(err, refused) {
		t.Error(err)
	}
}
