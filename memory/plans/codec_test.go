package plans

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

func fullPlan() Plan {
	return Plan{
		TimestampMillis: -1, Symbol: "BTC", Action: "BUY", Confidence: 1, Reasoning: "up",
		Hash: "h", Method: "llm", Metadata: map[string]string{"b": "2", "a": "1"},
	}
}

func fullExecution() Execution {
	return Execution{
		TimestampMillis: 1, PlanHash: "h", Symbol: "BTC", Action: "BUY", Confidence: 1, Status: "success",
		Executed: true, OrderID: "o", OrderSizeUSDT: 1, ErrorMessage: "e",
	}
}

// The stored bytes never change: they are what memory/FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	agent, err := scopeOf("t", "s")
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := scopeOf("t", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"counters", counters{1, 300, 2}.encode(), "0801" + "10ac02" + "1802"},
		{"plan", encodePlan(fullPlan()), "0801" + "1203425443" + "1a03425559" + "20808080fc03" + "2a027570" + "320168" + "3a036c6c6d" + "42060a0161120131" + "42060a0162120132"},
		{"plan of nothing", encodePlan(Plan{}), ""},
		{"metadata of nothing", encodePlan(Plan{Metadata: map[string]string{"": ""}}), "4200"},
		{"execution", encodeExecution(fullExecution()), "0802" + "120168" + "1a03425443" + "2203425559" + "28808080fc03" + "320773756363657373" + "3801" + "42016f" + "48808080fc03" + "520165"},
		{"line", encodeLine(line{1, "k", "s"}), "0802" + "12016b" + "1a0173"},
		{"counters key", agent.Key(tagCounters), "7400" + "617300" + "6a"},
		{"plan key", plans.key(agent, 258), "7400" + "617300" + "70" + "0000000000000102"},
		{"execution key", executions.key(agent, 1), "7400" + "617300" + "78" + "0000000000000001"},
		{"line key", lines.key(agent, 1), "7400" + "617300" + "6c" + "0000000000000001"},
		{
			"counters key of the session without a name", nobody.Key(tagCounters),
			"7400" + "79" + hex.EncodeToString([]byte("journal/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")) + "00" + "6a",
		},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The keys of the longest names stay within the store's limit.
func TestLongestKeyFits(t *testing.T) {
	tenant := strings.Repeat("t", kv.MaxTenantBytes)
	for _, session := range []string{strings.Repeat("s", kv.MaxOwnerBytes), strings.Repeat("s", kv.MaxOwnerBytes+1)} {
		scope, err := scopeOf(tenant, session)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(plans.key(scope, 1)); n > kv.MaxKeyBytes {
			t.Errorf("%d bytes", n)
		}
	}
}

// Every float comes back bit by bit, and every number whatever its sign.
func TestNumbersComeBack(t *testing.T) {
	for _, bits := range []uint32{0, 1, 0x80000000, 0x3f59999a, 0x7f800000, 0x7f800001, 0x7fc00000, math.MaxUint32} {
		p, err := decodePlan(encodePlan(Plan{Confidence: math.Float32frombits(bits)}))
		if got := math.Float32bits(p.Confidence); got != bits || err != nil {
			t.Errorf("got %x, %v, want %x", got, err, bits)
		}
	}
	for _, ms := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		l, err := decodeLine(encodeLine(line{timestampMillis: ms}))
		if l.timestampMillis != ms || err != nil {
			t.Errorf("got %d, %v, want %d", l.timestampMillis, err, ms)
		}
	}
}

// A later version may add fields; this one passes over them.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	grown := func(b []byte) []byte { return wire.AppendItem(wire.AppendNumber(b, 99, 7), 100, "x") }
	h, err := decodeCounters(grown(counters{1, 2, 3}.encode()))
	mustBe(t, "counters", err, counters{1, 2, 3}, h)
	p, err := decodePlan(grown(encodePlan(fullPlan())))
	mustBe(t, "plan", err, fullPlan(), p)
	e, err := decodeExecution(grown(encodeExecution(fullExecution())))
	mustBe(t, "execution", err, fullExecution(), e)
	l, err := decodeLine(grown(encodeLine(line{1, "k", "s"})))
	mustBe(t, "line", err, line{1, "k", "s"}, l)
}

func mustBe(tb testing.TB, what string, err error, want, got any) {
	tb.Helper()
	if err != nil || !reflect.DeepEqual(want, got) {
		tb.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
	}
}

func TestMillisBetween(t *testing.T) {
	for _, tt := range []struct {
		a, b int64
		want uint64
	}{{1, 1, 0}, {1000, 2000, 1000}, {2000, 1000, 1000}, {-5, 5, 10}, {math.MinInt64, math.MaxInt64, math.MaxUint64}} {
		if got := millisBetween(tt.a, tt.b); got != tt.want {
			t.Errorf("%d and %d: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzPlanRoundTrip(f *testing.F) {
	f.Add(int64(1), "BTC", "BUY", uint32(0x3f59999a), "why", "hash", "llm", "key", "value")
	f.Add(int64(0), "", "", uint32(0), "", "", "", "", "")
	f.Fuzz(func(t *testing.T, ms int64, symbol, action string, confidence uint32, reasoning, hash, method, key, value string) {
		want := Plan{ms, symbol, action, math.Float32frombits(confidence), reasoning, hash, method, map[string]string{key: value}}
		got, err := decodePlan(encodePlan(want))
		if math.Float32bits(got.Confidence) != confidence {
			t.Errorf("confidence %x, want %x", math.Float32bits(got.Confidence), confidence)
		}
		got.Confidence, want.Confidence = 0, 0 // no NaN is another's equal
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v:\n%s", err, diff)
		}
	})
}

func FuzzExecutionRoundTrip(f *testing.F) {
	f.Add(int64(1), "hash", "BTC", "BUY", uint32(0x3f59999a), "success", true, "order", uint32(0x42c80000), "error")
	f.Add(int64(0), "", "", "", uint32(0), "", false, "", uint32(0x7fc00000), "")
	f.Fuzz(func(t *testing.T, ms int64, hash, symbol, action string, confidence uint32, status string, executed bool, order string, size uint32, message string) {
		want := Execution{ms, hash, symbol, action, math.Float32frombits(confidence), status, executed, order, math.Float32frombits(size), message}
		got, err := decodeExecution(encodeExecution(want))
		if math.Float32bits(got.Confidence) != confidence || math.Float32bits(got.OrderSizeUSDT) != size {
			t.Errorf("confidence %v and size %v, want %v and %v", got.Confidence, got.OrderSizeUSDT, want.Confidence, want.OrderSizeUSDT)
		}
		got.Confidence, want.Confidence, got.OrderSizeUSDT, want.OrderSizeUSDT = 0, 0, 0, 0 // no NaN is another's equal
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

// FuzzDecode: garbage never panics; what can be read can be written and is read
// as the same again, and what can't is ErrDamaged.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x42, 0x01, 0xff})
	f.Add(counters{1, 2, 3}.encode())
	f.Add(encodePlan(fullPlan()))
	f.Add(encodeExecution(fullExecution()))
	f.Add(encodeLine(line{1, "k", "s"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		again(t, b, decodeCounters, counters.encode)
		again(t, b, decodePlan, encodePlan)
		again(t, b, decodeExecution, encodeExecution)
		again(t, b, decodeLine, encodeLine)
	})
}

func again[T any](t *testing.T, b []byte, decode func([]byte) (T, error), encode func(T) []byte) {
	t.Helper()
	first, err := decode(b)
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%v is not ErrDamaged", err)
		}
		return
	}
	written := encode(first)
	second, err := decode(written)
	if err != nil || string(encode(second)) != string(written) {
		t.Errorf("got %+v, %v, want %+v", second, err, first)
	}
}
