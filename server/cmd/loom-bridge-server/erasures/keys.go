package erasures

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
)

// maxFileBytes bounds a certificate and a key that are read.
const maxFileBytes = 64 << 20

// openKey reads the key that signs, and makes it if it is not there.
func openKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		return key, writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("can be read or written by users other than its owner (mode %#o), who could sign with it, too; make another key, or chmod 600 it if no one else has read it", mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("is no PEM file")
	}
	found, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := found.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("holds another kind of key than ed25519")
	}
	return key, nil
}

// readSigner reads the public key of who must have signed; nil without a file.
func readSigner(path string) (ed25519.PublicKey, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("is no PEM file")
	}
	if block.Type == "PUBLIC KEY" {
		found, err := x509.ParsePKIXPublicKey(block.Bytes)
		if key, ok := found.(ed25519.PublicKey); ok {
			return key, err
		}
		return nil, errors.Join(errors.New("holds no ed25519 key"), err)
	}
	found, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := found.(ed25519.PrivateKey); ok {
		return ed25519.PublicKey(key[ed25519.PrivateKeySize-ed25519.PublicKeySize:]), err
	}
	return nil, errors.Join(errors.New("holds no ed25519 key"), err)
}

func readCertificate(path string) (*erasure.Certificate, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), maxFileBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := erasure.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
