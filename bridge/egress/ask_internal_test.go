package egress

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asking is a session whose person takes a while to answer.
func asking(takes time.Duration, says error) (*Session, *int) {
	count := 0
	s := &Session{asked: map[string]*question{}, cancel: func() {}}
	s.transport = &http.Transport{}
	s.policy.Ask = func(ctx context.Context, _ string) error {
		count++
		select {
		case <-time.After(takes):
			return says
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s, &count
}

// The answer of a person is the session's: it counts for later requests though the one that
// asked gave up, and is asked for once.
func TestAnAnswerOutlivesTheRequestThatAsked(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]error{"yes": nil, "no": errors.New("who said no")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, count := asking(time.Minute, says)
				to := destination{host: "example.com", port: 443}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := s.decide(ctx, to); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a request that gave up: %v", err)
				}
				if len(s.Denied()) > 0 {
					t.Errorf("nobody said no, and the call is told %v", s.Denied())
				}
				later := make(chan error)
				for range 3 {
					go func() {
						_, err := s.decide(t.Context(), to)
						later <- err
					}()
				}
				for range 3 {
					if err := <-later; (err == nil) != (says == nil) || says != nil && !strings.Contains(err.Error(), says.Error()) {
						t.Errorf("a later request: %v", err)
					}
				}
				if *count != 1 {
					t.Errorf("asked %d times", *count)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A question ends with its session, which waits for nobody's answer.
func TestQuestionsEndWithTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := asking(time.Hour, nil)
		refused := make(chan error)
		go func() { refused <- s.ask(t.Context(), destination{host: "example.com", port: 443}) }()
		synctest.Wait()
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-refused; err == nil || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := s.ask(t.Context(), destination{host: "other.example.com", port: 443}); !errors.Is(err, errEnded) {
			t.Errorf("asked after the end: %v", err)
		}
	})
}
