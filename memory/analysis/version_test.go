package analysis_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

// texts are a bit of everything that the analysis treats in its own way.
var texts = []string{
	sample,
	"He went home; the children's oxen were running, and the wolves' leaves had fallen. To be or not to be",
	"func getUserName(ctx) in src/app.py, HTTPServer2 v1.2.3 max_inflight=256 user@example.com https://a.b/c?d=e #tag",
	"On 8 May 2023, Sept. 8, 2023-05-08T10:30, March 3rd and May we meet at 45,000 or 3.14? 1e9 0x1F",
	"我喜欢比特币和区块链技术。東京タワーへ行きました コーヒー ｶﾌｪ 안녕하세요 제주도에서",
	"Straße ﬁnding ǅ İ ﷺ l’été d'Éric naïve 🎉 á́ ½ ①",
	"Les chevaux étaient dans l'écurie, nous travaillions aux travaux nationaux",
	"A gyerekek a házakban voltak, és nagyobb kertjeinkben játszottak",
	"Guttene og jentene spiste brødskivene på kjøkkenet",
	"Мы долго говорили о красивых домах на берегу реки",
	"Los niños corrían por las calles cantando canciones",
	"Flickorna och pojkarna sprang genom skogarna",
	"ฉันชอบกินข้าวผัด ព្រះរាជាណាចក្រកម្ពុជា Κόσμε Łódź",
}

// The terms of a version never change: whoever changes them raises the version,
// then puts the new names and digests here.
func TestTermsOfVersion(t *testing.T) {
	want := map[string]string{
		"english/4": "bd7422b32c315096", "french/4": "715c57ea67d44917", "hungarian/4": "9e2f6ff3bb8b94ea",
		"norwegian/4": "9884af873a634db9", "russian/4": "8c36a43f385756e7", "spanish/4": "fc34fb9dc7529b69",
		"swedish/4": "2ca0876f09eee07f",
	}
	got := map[string]string{}
	for _, l := range analysis.Languages() {
		a := analysis.New(&analysis.Options{Language: l})
		var terms strings.Builder
		for _, text := range texts {
			for term := range a.Terms(text) {
				terms.WriteString(term + "\n")
			}
		}
		sum := sha256.Sum256([]byte(terms.String()))
		got[a.Name()] = hex.EncodeToString(sum[:8])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("digests (-want +got):\n%s", diff)
	}
}
