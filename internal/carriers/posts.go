package carriers

import "strings"

// posts are the postal services that people know by name, by the country code
// that ends their S10 numbers. YP and WW are no countries: operators use them.
const posts = "AE Emirates Post;AT Österreichische Post;AU Australia Post;BE bpost;BG Bulgarian Posts;BR Correios;BY Belpochta;CA Canada Post;CH Swiss Post;" +
	"CL Correos de Chile;CN China Post;CZ Česká pošta;DE Deutsche Post;DK PostNord;EE Omniva;EG Egypt Post;ES Correos;FI Posti;FR La Poste, Chronopost;" +
	"GB Royal Mail, Parcelforce;GR Hellenic Post;HK Hongkong Post;HR Hrvatska pošta;HU Magyar Posta;ID Pos Indonesia;IE An Post;IL Israel Post;IN India Post;" +
	"IT Poste Italiane;JP Japan Post;KR Korea Post;KZ Kazpost;LT Lietuvos paštas;LU Post Luxembourg;LV Latvijas Pasts;MX Correos de México;MY Pos Malaysia;" +
	"NL PostNL;NO Posten Norge;NZ NZ Post;PH PHLPost;PL Poczta Polska;PT CTT;RO Poșta Română;RS Pošta Srbije;RU Russian Post;SA Saudi Post;SE PostNord;" +
	"SG SingPost;SI Pošta Slovenije;SK Slovenská pošta;TH Thailand Post;TR PTT;TW Chunghwa Post;UA Ukrposhta;US USPS;VN Vietnam Post;WW TNT;YP Yanwen;ZA South African Post Office"

// postalService returns the name of the postal service with a country code.
func postalService(code string) string {
	for entry := range strings.SplitSeq(posts, ";") {
		if name, ok := strings.CutPrefix(entry, code+" "); ok {
			return name
		}
	}
	return "postal service of " + code
}
