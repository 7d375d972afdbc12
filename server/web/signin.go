package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

// SignInPath is where a page trades a token for a cookie (POST, with the token as any caller
// gives it), and gives the cookie back (DELETE).
const SignInPath = "/sign-in"

// KeyHeader has the key that opens the cookie. Pages of other sites can't send it, and the
// browser does not by itself.
const KeyHeader = "Loom-Key"

const (
	cookiePrefix = "loom-bridge-"
	// maxSignInToken keeps a cookie within the 4,096 bytes that browsers take.
	maxSignInToken = 2 << 10
	keyBytes       = 32
)

// The cookie holds the token, sealed with a key that the page keeps and the server forgets. A
// browser sends cookies to every port of a machine, and lets scripts read what a page keeps:
// each half alone is worth nothing. As the token itself counts, it ends with the token, and
// survives the end of the process.

// SignIn answers with the key of a new cookie, for a caller with a token.
func (f *Face) SignIn() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if token == "" || len(token) > maxSignInToken {
			Refuse(w, r, http.StatusBadRequest, "Authorization", "must be `Bearer` and a token of at most 2,048 bytes; a server without credentials needs none")
			return
		}
		key := make([]byte, keyBytes)
		_, _ = rand.Read(key) // it never fails
		box := sealer(key)
		nonce := make([]byte, box.NonceSize())
		_, _ = rand.Read(nonce)
		f.setCookie(w, r, base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, []byte(token), nil)), 0)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"key": base64.RawURLEncoding.EncodeToString(key)}) // who does not read it has left
	})
}

// SignOut takes the cookie back.
func (f *Face) SignOut() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.setCookie(w, r, "", -1)
		w.WriteHeader(http.StatusNoContent)
	})
}

// setCookie sets the cookie; with a negative age the browser forgets it.
func (f *Face) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: age, Secure: f.tls != nil, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// cookieName tells servers on one machine apart, which get each other's cookies.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return cookiePrefix + port
	}
	return cookiePrefix + "default"
}

// bySignIn puts the token of a cookie where a caller gives it, and reports whether it did. A token
// that is given is stronger.
func bySignIn(r *http.Request) bool {
	text := r.Header.Get(KeyHeader)
	if text == "" || len(r.Header.Values("Authorization")) > 0 {
		return false
	}
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return false
	}
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(key) != keyBytes {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	box := sealer(key)
	if err != nil || len(sealed) < box.NonceSize() {
		return false
	}
	token, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], nil)
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "Bearer "+string(token))
	return true
}

func sealer(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has its length
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block has its length
	}
	return box
}
