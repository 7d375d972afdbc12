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
		"auto/6": "2fa276610592df1a", "danish/6": "e066a0af514a7b83", "dutch/6": "d81bc9096da3da6e", "english/6": "f9db3bb73e9820a0",
		"finnish/6": "f54e3e745072e497", "french/6": "662ac57f8c89d29e", "german/6": "8f558d873e404b7a", "hungarian/6": "6c5c2a459b98b167",
		"italian/6": "58301799287a59fb", "norwegian/6": "09ddaed0dfbdf1e4", "portuguese/6": "73e381715775281f", "romanian/6": "f8f6e6a8578cf369",
		"russian/6": "f9db3bb73e9820a0", "spanish/6": "db3ba0290c0d8dca", "swedish/6": "e7ef647aa5628566", "turkish/6": "ae3f51802f3b77de",
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
