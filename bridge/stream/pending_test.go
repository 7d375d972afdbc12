package stream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func testLimits() Limits {
	return Limits{Publishes: 40, PublishBytes: 1 << 20, Batch: 16, Replies: 3}
}

func publicationOf(size int) Publication[string] { return Publication[string]{Size: size} }

// takeAll takes and answers what was published, until it ends or nothing is there.
func takeAll(p *pending[string]) (taken int) {
	for {
		batch, _ := p.firstPublishes(nil)
		if len(batch) == 0 {
			return taken
		}
		bytes := 0
		for _, one := range batch {
			bytes += one.Size
		}
		taken += len(batch)
		p.answer(nil, len(batch), bytes)
	}
}

// Who publishes waits, by number and by bytes, until some are answered.
func TestPublishesAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ size, fits int }{
		"number": {0, testLimits().Publishes},
		"bytes":  {1 << 17, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPending[string](testLimits(), nil)
				for range tt.fits {
					if err := p.publish(t.Context(), publicationOf(tt.size)); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 2)
				go func() { done <- p.publish(ctx, publicationOf(tt.size)) }()
				synctest.Wait()
				if len(done) != 0 {
					t.Fatal("it did not wait")
				}
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				go func() { done <- p.publish(t.Context(), publicationOf(tt.size)) }()
				synctest.Wait()
				taken := takeAll(p)
				if err := <-done; err != nil {
					t.Errorf("got %v", err)
				}
				p.close()
				if taken += takeAll(p); taken != tt.fits+1 {
					t.Errorf("%d taken, want %d", taken, tt.fits+1)
				}
			})
		})
	}
}

// One publish that is larger than all may be passes when nothing else waits.
func TestOnePublishOfAnySize(t *testing.T) {
	p := newPending[string](testLimits(), nil)
	if err := p.publish(t.Context(), publicationOf(testLimits().PublishBytes+1)); err != nil {
		t.Fatal(err)
	}
	if got := takeAll(p); got != 1 {
		t.Errorf("%d taken", got)
	}
}

// The bus gets what there is, a batch at a time, and hears of the end.
func TestPublishesWakeWhoTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPending[string](testLimits(), nil)
		taken := make(chan int)
		take := func() { taken <- len(p.takePublishes(t.Context(), nil)) }
		go take()
		synctest.Wait()
		for range testLimits().Batch + 2 {
			if err := p.publish(t.Context(), publicationOf(1)); err != nil {
				t.Fatal(err)
			}
		}
		first := <-taken
		go take()
		if second := <-taken; first > testLimits().Batch || second > testLimits().Batch {
			t.Errorf("%d and %d taken at once", first, second)
		}
		p.close()
		for range 3 {
			go take()
			if got := <-taken; got == 0 {
				return
			}
		}
		t.Error("the end was not seen")
	})
}

// Answers to other messages have a limit of their own, and keep their order among
// those to publishes.
func TestRepliesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPending[string](testLimits(), nil)
		for range 2 {
			if err := p.reply(t.Context(), "pong"); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.publish(t.Context(), publicationOf(1)); err != nil {
			t.Fatal(err)
		}
		p.answer([]agentAnswer[string]{{"emitted", true}}, 0, 1)
		if err := p.reply(t.Context(), "pong"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- p.reply(t.Context(), "late") }()
		synctest.Wait()
		if len(done) != 0 {
			t.Fatal("it did not wait")
		}
		answers := p.takeAnswers(nil)
		if len(answers) != 4 || answers[2].message != "emitted" {
			t.Errorf("got %v", answers)
		}
		p.sent(answers)
		if err := <-done; err != nil || p.unanswered != 0 || p.replies != 1 {
			t.Errorf("got %v, %d unanswered, %d replies", err, p.unanswered, p.replies)
		}
	})
}

// What was published comes out once and in order, whatever the batches are that are
// handed back for reuse.
func TestPublishesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 5000
		p := newPending[string](testLimits(), nil)
		go func() {
			for i := range all {
				_ = p.publish(t.Context(), Publication[string]{Ref: int64(i)})
			}
			p.close()
		}()
		next := int64(0)
		var batch []Publication[string]
		for {
			if batch = p.takePublishes(t.Context(), batch); len(batch) == 0 {
				break
			}
			for _, one := range batch {
				if one.Ref != next {
					t.Fatalf("got %d, want %d", one.Ref, next)
				}
				next++
			}
			p.answer(nil, len(batch), 0)
			batch = reuse(batch)
		}
		if next != all {
			t.Errorf("%d came out", next)
		}
	})
}
