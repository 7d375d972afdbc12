package sandbox

import "context"

// Probe tries a tier from which layers were taken away, and says what it found.
func Probe(ctx context.Context, tier string, layers ...string) string {
	l := NewLocal(&Options{Tier: tier, Without: layers})
	defer l.Close()
	report, err := l.try(ctx, Confinement{Tier: tier, LandlockABI: 99})
	if err == nil {
		return ""
	}
	return err.Error() + report.Error
}
