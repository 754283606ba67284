#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# The output of "nginx -t".  A configuration that loads but does not work as
# intended gets a warning, with the line of the directive and a correction.  If
# it does not load, the error names the valid values.  A correct configuration
# gets no output.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Process qw/ root run_command slurp spew /;

Test::Xet->folder('what nginx -t says of folders');

my $t = Test::Xet->new(workers => 1);

$t->write_file('sign.key', 'token:t1:' . '70' x 32 . "\n");
chmod(0600, $t->dir() . '/sign.key');

# Removes the mark "!!" from a configuration, and runs "nginx -t" on it.
# Returns the output lines that have a level, and the number of the marked line.
# The module reports the exact line of a directive, so the tests put each
# directive on its own line.

my @level = qw/ emerg warn /;

sub said {
	my ($text, %o) = @_;

	$text = $t->expand($text // Test::Xet::default_conf());

	my @lines = split(/\n/, $text);
	my ($marked) = grep { $lines[$_ - 1] =~ /!!/ } 1 .. @lines;

	$text =~ s/!!//g;

	my ($good, $out) = $t->nginx()->config_test($text);
	my $file = $t->dir() . '/test.conf';
	my @said;

	for my $line (split(/\n/, $out)) {
		push @said, { level => $1, text => $2, file => $3, line => $4 }
			if $line =~ /\[(\w+)\] (.*) in (\S+):(\d+)$/;
	}

	return { good => $good, out => $out, said => \@said,
		marked => $marked, file => $file };
}

# Returns a configuration; $server is either the contents of one server block,
# or whole server blocks.

sub conf {
	my ($server, $http) = @_;

	$http //= '';

	$server = "server {\nlisten 127.0.0.1:%%PORT_8080%%;\n$server\n}\n"
		unless $server =~ /^\s*server\b/m;

	# omits the default "xet_url_base" if the test sets one

	my $xet = join("\n", grep {
		"$http$server" !~ /xet_url_base/ || !/xet_url_base/
	} split(/\n\s*/, $t->conf_xet()));

	$xet =~ s/^xet_store.*\n//m if $http =~ /xet_store/;

	my $buffers = $http =~ /large_client/ ? ''
		: "large_client_header_buffers 8 72k;\n";

	return <<"EOF2";
%%MAIN%%
events {
    worker_connections 512;
}
http {
$buffers
$http
$xet
$server
}
EOF2
}

# Returns a regular expression for this text, in which "..." matches anything.

sub words {
	my $text = join('.*', map { quotemeta($_) } split(/\.\.\./,
		join('', @_)));

	return qr/$text/;
}

sub warns {
	my ($name, $regex, $conf, $n) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $is = said($conf);
	my @said = @{ $is->{said} };

	ok($is->{good}, "$name: loads") or diag($is->{out});
	is(scalar @said, $n // 1, "$name: one warning") or diag($is->{out});
	is($said[0]{level}, 'warn', "$name: a warning");
	like($said[0]{text} // '', $regex, "$name: what");
	is($said[0]{file}, $is->{file}, "$name: the file");
	is($said[0]{line}, $is->{marked}, "$name: the line");
}

sub refused {
	my ($name, $regex, $conf) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $is = said($conf);

	ok(!$is->{good}, "$name: refused");
	like($is->{said}[0]{text} // '', $regex, "$name: what");
	is($is->{said}[0]{line}, $is->{marked}, "$name: the line")
		or diag($is->{out});
}

sub silent {
	my ($name, $conf) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	my $is = said($conf);

	ok($is->{good}, "$name: loads");
	unlike($is->{out}, qr/\[(?!notice)\w+\]/, "$name: no word")
		or diag($is->{out});
}

my $store = $t->store();

my $data = "location /xorbs/ {\nxet_data;\nroot $store;\n}\n";
my $api = "location /api/ {\nxet_api;\nxet_auth off;\n"
	. "client_max_body_size 80m;\n}\n";

# --------------------------------------------------------------------------
# correct configurations

silent('the usual one', undef);
silent('the shipped configuration', $t->shipped_conf());
silent('with its optional includes', included());
silent('the edge that is shipped', edge());
silent('two locations', conf($api . $data));

# Returns the shipped configuration with its optional includes enabled.

sub included {
	my $text = $t->shipped_conf();
	my $dir = $t->dir();

	$text =~ s!# (include \S+/xet_(\w+)\.conf;)!$1!g == 2
		or die "conf/nginx.conf includes something else\n";

	spew("$dir/xet_$_.conf", slurp(root() . "/conf/xet_$_.conf")
		=~ s!/var/log/nginx!$dir!gr) for qw/ limits audit /;

	return $text;
}

sub edge {
	my $text = slurp(root() . '/conf/edge.conf');
	my $dir = $t->dir();
	my $module = Test::Xet::Nginx::module();

	$text =~ s!load_module .*!$module eq '' ? '' : "load_module $module;"!e;
	$text =~ s!^user .*!!m;
	$text =~ s!127.0.0.1:8080!127.0.0.1:%%PORT_8080%%!g;
	$text =~ s!/run/nginx.pid!$dir/nginx.pid!;
	$text =~ s!/var/(?:log|cache)/nginx!$dir!g;
	$text =~ s!/etc/nginx/xet!$dir!g;
	$text =~ s!^http \{!"http {\n" . join("\n", map {
		"${_}_temp_path $dir/temp/$_;" }
		qw/ client_body proxy fastcgi uwsgi scgi /)!me;

	return $text;
}

# --------------------------------------------------------------------------
# root and alias of a location with xet_data

my $root = words('"root" of location "...", which is not the folder ...',
	"\"$store\": downloads fail with 404; write \"root $store;\"");

symlink($store, $t->dir() . '/link');
mkdir($t->dir() . '/elsewhere');
symlink("$store/xorbs", $t->dir() . '/elsewhere/xorbs');
make_store();

sub make_store {
	mkdir("$store/$_") for qw! xorbs xorbs/default !;
}

warns('root', $root, conf("$api location /xorbs/ {\n!!xet_data;\n"
	. "root /tmp;\n}"));
warns('root of the server', $root, conf("root /tmp;\n$api"
	. "location /xorbs/ {\n!!xet_data;\n}"));
warns('no root', $root, conf("$api location /xorbs/ {\n!!xet_data;\n}"));
warns('root with the folder', $root, conf("$api location /xorbs/ {\n"
	. "!!xet_data;\nroot $store/xorbs;\n}"));
warns('an included one', $root, conf("$api location /xorbs/ {\n"
	. "!!xet_data; root $store/none;\n}"));
warns('of a regular expression', $root, conf("$api location ~ ^/xorbs/ {\n"
	. "!!xet_data;\nroot /tmp;\n}"));
warns('the alias', qr/"alias" of location "\/cas\/xorbs\/" is "\/tmp\/"/,
	conf("$api location /cas/xorbs/ {\n!!xet_data;\n"
		. "alias /tmp/;\n}\n$data"));
warns('root behind a prefix', qr/"root" of location "\/cas\/xorbs\/" is/,
	conf("$api location /cas/xorbs/ {\n!!xet_data;\n"
		. "root $store;\n}\n$data"));
warns('a nested one', $root, conf("root $store;\n$api location / {\n"
	. "location /xorbs/ {\n!!xet_data;\nroot /tmp;\n}\n}\n"));

silent("root: $_->[0]", conf("root $store;\n$api$_->[1]"))
	for [ 'of the server', "location /xorbs/ {\nxet_data;\n}" ],
	[ 'a link', "location /xorbs/ {\nxet_data;\nroot "
		. $t->dir() . "/link;\n}" ],
	[ 'a link to its folder', "location /xorbs/ {\nxet_data;\nroot "
		. $t->dir() . "/elsewhere;\n}" ],
	[ 'a slash at its end', "location /xorbs/ {\nxet_data;\n"
		. "root $store/;\n}" ],
	[ 'an alias', "location /xorbs/ {\nxet_data;\n"
		. "alias $store/xorbs/;\n}" ],
	[ 'an alias behind a prefix', "location /cas/xorbs/ {\nxet_data;\n"
		. "alias $store/xorbs/;\n}\n$data" ],
	[ 'a variable', "location /xorbs/ {\nxet_data;\nroot /\$host;\n}" ],
	[ 'a regular expression', "location ~ ^/xorbs/ {\nxet_data;\n}" ],
	[ 'an alias of one', "location ~ ^/cas/xorbs/(.*)\$ {\nxet_data;\n"
		. "alias $store/xorbs/\$1;\n}\n$data" ],
	[ 'everything', "location / {\nxet_data;\n}" ],
	[ 'an edge', "$data location /e/xorbs/ {\nxet_data;\nroot /tmp;\n"
		. "proxy_pass http://127.0.0.1:9;\n}" ],
	[ 'if', "location /xorbs/ {\nxet_data;\nif (\$http_x) {\n"
		. "set \$y 1;\n}\n}" ];

silent('xorbs that are not there yet', do {
	rmdir("$store/xorbs/default");
	rmdir("$store/xorbs");
	conf($api . $data);
});
warns('and a wrong root', $root, conf("$api location /xorbs/ {\n!!xet_data;\n"
	. "root /tmp;\n}"));
make_store();

# --------------------------------------------------------------------------
# xet_hub

my $hub = words('the tokens of "xet_hub" in location "/" point to "...", where',
	' the server has no "xet_api" with "xet_auth token" and',
	' "xet_access repo"');
my $cas = "location /cas/ {\nxet_api;\nxet_api_base /cas;\nxet_auth token;\n"
	. "xet_access repo;\nclient_max_body_size 80m;\n}\n";
my $key = 'xet_token_key %%DIR%%/token.key;';
my $open = "xet_auth off;\n";

warns('hub: the open API', $hub, conf("$api$data location / {\n!!xet_hub on;\n"
	. "$open}", $key));
warns('hub: nothing', $hub, conf("$data location / {\n!!xet_hub on;\n"
	. "xet_api_base /none;\n$open}", $key));
warns('hub: of the store', $hub, conf($cas =~ s/access repo/access store/r
	. "$data location / {\n!!xet_hub on;\nxet_api_base /cas;\n$open}",
	$key));
warns('hub: no such upstream', words('"xet_hub_upstream" of location ',
	'"/" points to "@none", which does not exist'),
	conf("$cas$data location / {\n!!xet_hub on;\nxet_api_base /cas;\n"
		. "${open}xet_hub_upstream \@none;\n}", $key));
silent('hub: an upstream', conf("$cas$data location / {\nxet_hub on;\n"
	. "xet_api_base /cas;\n$open}\nxet_hub_upstream \@some;\n"
	. "location \@some {\nproxy_pass http://127.0.0.1:9;\n}", $key));
silent('hub: its own', conf("$api$cas$data location / {\nxet_hub on;\n"
	. "xet_api_base /cas;\n$open}", $key));
silent('hub: elsewhere', conf("$api$data location / {\nxet_hub on;\n"
	. "xet_token_cas_url https://cas.example/cas;\n$open}", $key));

# --------------------------------------------------------------------------
# xet_url_base

my $here = 'http://127.0.0.1:%%PORT_8080%%';
my $base = words('"xet_url_base" points to this nginx, but no location of ',
	'"xet_data" serves "/cas/xorbs/": downloads fail with 404');

warns('a base', $base, conf("!!xet_url_base $here/cas;\n$api$data"));
warns('a base of http', $base, conf("$api$data", "!!xet_url_base $here/cas;"));
warns('a base by name', $base, conf("server_name a.example b.example;\n"
	. "!!xet_url_base http://b.example:%%PORT_8080%%/cas/;\n$api$data"));

silent("base: $_", conf("server_name a.example;\nxet_url_base $_;\n$api$data"))
	for $here, "$here/", 'https://cdn.example/cas', "https://a.example/cas",
		'http://a.example/cas', 'http://$host/cas',
		'http://b.example:%%PORT_8080%%/cas';
silent('base: its location', conf("xet_url_base $here/cas;\n$api"
	. "location /cas/xorbs/ {\nxet_data;\nalias $store/xorbs/;\n}"));
silent('base: of another server', conf("server {\n"
	. "listen 127.0.0.1:%%PORT_8080%%;\nxet_url_base $here/cas;\n$api}\n"
	. "server {\nlisten 127.0.0.1:%%PORT_8081%%;\n"
	. "location /cas/xorbs/ {\nxet_data;\nalias $store/xorbs/;\n}\n}"));
silent('base: no data here', conf("xet_url_base $here/cas;\n$api"));
silent('base: passed on', conf("xet_url_base $here/cas;\n$api$data"
	. "location /cas/ {\nproxy_pass http://127.0.0.1:9;\n}"));
silent('base: sent elsewhere', conf("xet_url_base $here/cas;\n$api$data"
	. "location /cas/ {\nrewrite ^/cas(/.*)\$ \$1 last;\n}"));

# --------------------------------------------------------------------------
# xet_api_base

my $no_route = words('"xet_api_base" is "...", but no URI of location "...',
	'" starts with it: all requests fail with 404 no_route');
my $auth = "xet_api;\nxet_auth off;\nclient_max_body_size 80m;\n";

warns('api base', $no_route, conf("$data location /cas/ {\n$auth"
	. "!!xet_api_base /models;\n}"));
warns('api base of the server', $no_route, conf("!!xet_api_base /models;\n"
	. "$data location /cas/ {\n$auth}"));
warns('api base by default', $no_route, conf("$data location /cas/ {\n"
	. "!!$auth}"));
warns('api base of a part of a name', $no_route, conf("$data"
	. "location /apis/ {\n!!$auth}"));
warns('api base, exact', $no_route, conf("$data location = /api {\n!!$auth}"));

silent("api base: $_->[0]", conf("$data location $_->[0] {\n$auth$_->[1]\n}"))
	for [ '/', '' ], [ '/api', '' ], [ '/api/', '' ], [ '/api/v1/', '' ],
	[ '= /v1/telemetry', 'xet_api_base "";' ],
	[ '/v1/', 'xet_api_base "";' ], [ '~ /v1/', '' ],
	[ '/cas/', 'xet_api_base /cas/models;' ], [ '^~ /api/', '' ];

# --------------------------------------------------------------------------
# client_max_body_size

my $body = words('"client_max_body_size" of location "/api/" is ...k, but a ',
	'xorb may have 68672k: uploads fail with 413; ... ',
	'"client_max_body_size 80m;"');

warns('1m', $body, conf("$data location /api/ {\n!!xet_api;\n"
	. "xet_auth off;\n}"));
warns('64m', $body, conf("client_max_body_size 64m;\n$data"
	. "location /api/ {\n!!xet_api;\nxet_auth off;\n}"));
warns('of larger xorbs', qr/a xorb may have .* "client_max_body_size 132m;"/,
	conf("$data location /api/ {\n!!$auth xet_xorb_max_size 128m;\n}"));
warns('of shards', words('"client_max_body_size" of location "...shards$" is ',
	'1024k, but a shard or a file may have 65536k'),
	conf("$data$api location ~ ^/api/(v1/)?shards\$ {\n!!xet_api;\n"
		. "xet_auth off;\n}"));
warns('of a nested one', qr/location "\^\/api\/\(v1\/\)\?files\$" is 1024k/,
	conf("$data location /api/ {\n$auth location ~ ^/api/(v1/)?files\$ {\n"
		. "!!xet_api;\nclient_max_body_size 1m;\n}\n}"));
warns('of an edge', $body, conf("$data location /api/ {\n"
	. "!!xet_verify_body on;\nproxy_pass http://127.0.0.1:9;\n}"));

silent("body: $_->[0]", conf($data . $_->[1]))
	for [ '68m', "location /api/ {\nxet_api;\nxet_auth off;\n"
		. "client_max_body_size 68m;\n}" ],
	[ 'none', "location /api/ {\nxet_api;\nxet_auth off;\n"
		. "client_max_body_size 0;\n}" ],
	[ 'uploads elsewhere', "location /api/ {\nxet_api;\nxet_auth off;\n}"
		. "location ~ ^/api/(v[12]/)?(xorbs|shards|files)(/|\$) {\n"
		. "$auth}" ],
	[ 'readers', "location /api/ {\nlimit_except GET {\ndeny all;\n}\n"
		. "xet_api;\nxet_auth off;\n}" ],
	[ 'telemetry', "location = /v1/telemetry {\nxet_api;\nxet_auth off;\n"
		. "xet_api_base \"\";\n}" ],
	[ 'another site', "location /site/ {\n"
		. "proxy_pass http://127.0.0.1:9;\n}" ],
	[ 'an edge', "location / {\nxet_verify_body on;\n"
		. "client_max_body_size 80m;\n"
		. "proxy_pass http://127.0.0.1:9;\n}" ];

silent('body: another site beside an edge', conf("server {\n"
	. "listen 127.0.0.1:%%PORT_8081%%;\nlocation / {\n"
	. "proxy_pass http://127.0.0.1:9;\n}\n}", 'xet_verify_body on;'));

# --------------------------------------------------------------------------
# large_client_header_buffers

my $lines = words('"large_client_header_buffers" has buffers of ... bytes, ',
	'...may need ..."large_client_header_buffers 8 72k;"');
my $one = "location /api/ {\n!!$auth";

warns('a batch', $lines, conf("$data${one}xet_batch_max 110;\n}",
	"large_client_header_buffers 4 8k;"));
warns('short lines', $lines, conf("$data$one}",
	"large_client_header_buffers 4 4k;"));
warns('many ranges', $lines, conf("$data${one}xet_batch_max 1;\n"
	. "xet_url_ranges 512;\n}", "large_client_header_buffers 4 4k;"));
warns('tokens', qr/8192 bytes.*may need 16896/, conf("$data location /api/ {\n"
	. "!!xet_api;\nxet_auth token;\nclient_max_body_size 80m;\n}",
	"large_client_header_buffers 4 8k; xet_token_key %%DIR%%/sign.key;"));
warns('of a default server', $lines, conf("server {\n"
	. "listen 127.0.0.1:%%PORT_8080%%;\nlarge_client_header_buffers 4 4k;\n"
	. "return 404;\n}\nserver {\nlisten 127.0.0.1:%%PORT_8080%%;\n"
	. "server_name a;\n$data$one}\n}"));

silent('lines: 8k', conf($data . $api, "large_client_header_buffers 4 8k;"));
silent('lines: of another server', conf("server {\n"
	. "listen 127.0.0.1:%%PORT_8081%%;\nlarge_client_header_buffers 4 4k;\n"
	. "}\nserver {\nlisten 127.0.0.1:%%PORT_8080%%;\n$data$api}"));
silent('lines: tokens of our own', conf("$data location /api/ {\n"
	. "xet_api;\nxet_auth token;\nclient_max_body_size 80m;\n}\n"
	. "location /token {\nxet_token;\n}",
	"large_client_header_buffers 4 8k; xet_token_key %%DIR%%/sign.key;"));

# --------------------------------------------------------------------------
# xet_url_ranges

my $ranges = words('"xet_url_ranges" is 8, but "max_ranges" of location ',
	'"/xorbs/" is 4: requests ... 403 range_not_signed; write ',
	'"max_ranges 8;"');
my $four = "location /xorbs/ {\nxet_data;\nroot $store;\nmax_ranges 4;\n}\n";

warns('ranges', $ranges, conf("$four location /api/ {\n$auth"
	. "!!xet_url_ranges 8;\n}"));
warns('ranges of the server', $ranges, conf("!!xet_url_ranges 8;\n$four"
	. "location /api/ {\n$auth\nlocation ~ files\$ {\nxet_api;\n"
	. "client_max_body_size 0;\n}\n}"));

silent('ranges: as many', conf("xet_url_ranges 4;\n$four$api"));
silent('ranges: no bound', conf("xet_url_ranges 512;\n$data$api"));
silent('ranges: data elsewhere', conf("xet_url_ranges 8;\n$api",
	'xet_url_base https://cdn.example;'));
silent('ranges: an edge', conf("xet_url_ranges 8;\n$api location /xorbs/ {\n"
	. "xet_data;\nmax_ranges 1;\nproxy_pass http://127.0.0.1:9;\n}"));

# --------------------------------------------------------------------------
# two directives that handle the same requests

my $place = qr/"xet_api" replaces another directive of the location/;
my $lost = words('"xet_api" of location "/api/" has no effect: a later ',
	'directive answers all requests');

warns("$_ before", $place, conf("$data location /api/ {\n$_\n!!$auth}"))
	for 'proxy_pass http://127.0.0.1:9;', 'fastcgi_pass 127.0.0.1:9;',
		'stub_status;', 'empty_gif;';
warns("$_ behind", $lost, conf("$data location /api/ {\n!!$auth$_\n}"))
	for 'proxy_pass http://127.0.0.1:9;', 'fastcgi_pass 127.0.0.1:9;',
		'stub_status;';
warns('return', qr/"xet_api" of location "\/api\/" has no effect: "return"/,
	conf("$data location /api/ {\n!!$auth return 503;\n}"));
warns('xet_token and xet_api', $place, conf("$data location /api/ {\n"
	. "xet_token;\n!!$auth}", 'xet_token_key %%DIR%%/sign.key;'));
warns('xet_api in xet_data', qr/"xet_api" of .* within "xet_data": .* 403/,
	conf("location / {\nxet_data;\nroot $store;\n"
		. "location /api/ {\n!!$auth}\n}"));

silent("one: $_->[0]", conf("$data location /api/ {\n$auth$_->[1]\n}"))
	for [ 'if', "if (\$http_x) {\nreturn 403;\n}" ],
	[ 'set', 'set $x 1;' ], [ 'if that passes on', "if (\$http_x) {\n"
		. "proxy_pass http://127.0.0.1:9;\n}" ],
	[ 'limit_except', "limit_except GET {\nallow all;\n}" ],
	[ 'mirror', 'mirror /none;' ];

# --------------------------------------------------------------------------
# error_page and xet_error

warns('no @xet_error', words('"error_page" of location "/api/" points to ',
	'"@xet_error", which does not exist in this server: clients get ',
	'500 instead of 413; write "location @xet_error { xet_error; }"'),
	conf("$data location /api/ {\n!!$auth"
		. "error_page 413 414 \@xet_error;\n}"));
warns('one of another server', qr/points to "\@xet_error"/, conf("server {\n"
	. "listen 127.0.0.1:%%PORT_8080%%;\n$data location /api/ {\n!!$auth"
	. "error_page 413 \@xet_error;\n}\n}\nserver {\n"
	. "listen 127.0.0.1:%%PORT_8081%%;\nerror_page 404 \@xet_error;\n"
	. "location \@xet_error {\nxet_error;\n}\n}"));
warns('no error_page', words('no "error_page" of the server points to ',
	'location "@xet_error" of "xet_error": ... HTML; write ',
	'"error_page 400'),
	conf("$data$api location \@xet_error {\n!!xet_error;\n}"));

silent("errors: $_->[0]", conf("$data$api$_->[1]"))
	for [ 'of the server', "error_page 413 \@e;\nlocation \@e {\n"
		. "xet_error;\n}" ],
	[ 'a URI', "error_page 413 /e;\nlocation = /e {\nxet_error;\n}" ],
	[ 'a folder', "error_page 413 /e/413;\nlocation /e/ {\nxet_error;\n}" ],
	[ 'a variable', "error_page 413 \$e;\nset \$e \@e;\nlocation \@e {\n"
		. "xet_error;\n}" ];

# --------------------------------------------------------------------------
# other warnings

warns('errors of the cache', words('"open_file_cache_errors" is on in ',
	'location "/xorbs/"...stays 404; write "open_file_cache_errors off;"'),
	conf("$api location /xorbs/ {\n!!xet_data;\nroot $store;\n"
		. "open_file_cache max=10;\nopen_file_cache_errors on;\n}"));
warns('no TLS', words('"xet_require_tls on" in a server that does not listen ',
	'with "ssl": ... 403 tls_required'),
	conf("$data location /api/ {\nxet_api;\nxet_auth token;\n"
		. "client_max_body_size 80m;\n!!xet_require_tls on;\n}",
		'xet_token_key %%DIR%%/sign.key;'));
warns('a zone of nobody', words('"xet_upload_zone" "u" is not used in any ',
	'location ... write "xet_upload_limit u;"'),
	conf($data . $api,
		'!!xet_upload_zone $xet_client zone=u:1m concurrent=2;'));
warns('post_action', qr/ignores "post_action" in location "\/api\/"/,
	conf("$data location /api/ {\n!!$auth post_action \@x;\n}\n"
		. "location \@x {\nreturn 204;\n}"));


my $repos = "xet_auth token;\nxet_access repo;\n$data location /api/ {\n"
	. "xet_api;\nclient_max_body_size 80m;\n}\n";
my $mints = 'xet_token_key %%DIR%%/sign.key;';

warns('tokens of no repo', words('"xet_token" of location "/token" issues ',
	'tokens without a repo, ... 403 insufficient_scope'),
	conf("$repos location /token {\n!!xet_token;\n"
		. "xet_token_scope write;\n}", $mints));

silent("tokens: $_->[0]", conf("$repos location /token {\nxet_token;\n"
	. "$_->[1]\n}", $mints))
	for [ 'of a repo', 'xet_token_scope write; xet_token_repo a/b;' ],
	[ 'of readers', '' ], [ 'that read', 'xet_token_scope read;' ];
silent('tokens: also of a store', conf("$repos location /token {\n"
	. "xet_token;\nxet_token_scope \$arg_scope;\n}\n"
	. "location /store/ {\nxet_api;\nxet_access store;\n"
	. "xet_api_base /store;\nclient_max_body_size 80m;\n}", $mints));

silent('a zone', conf("xet_upload_limit u;\n$data$api",
	'xet_upload_zone $xet_client zone=u:1m concurrent=2;'));
silent('TLS elsewhere', conf("$data location /api/ {\nxet_api;\n"
	. "xet_auth token;\nclient_max_body_size 80m;\n"
	. "xet_require_tls \$http_x_forwarded_proto;\n}",
	'xet_token_key %%DIR%%/sign.key;'));

# an included file, with its own line numbers

$t->write_file('part.conf', "# one\n\nlocation /api/ {\n    xet_api;\n"
	. "    xet_auth off;\n}\n");
{
	my $is = said(conf("$data include %%DIR%%/part.conf;"));

	is($is->{said}[0]{file}, $t->dir() . '/part.conf',
		'included: the file');
	is($is->{said}[0]{line}, 4, 'included: the line');
	is(scalar @{ $is->{said} }, 1, 'included: once');
}

# --------------------------------------------------------------------------
# refused configurations: the error names the valid values and the line, even if
# the module checks the value only at the end of the block

sub wrong {
	my ($name, $regex, $directive) = @_;

	refused($name, $regex, conf("$data location /api/ {\n$auth"
		. "!!$directive\n}"));
}

for (
	[ 'xet_access', 'x', '"store" or "repo"' ],
	[ 'xet_dedup_scope', 'all', '"store" or "repo"' ],
	[ 'xet_url_mode', 'cached', '"strict" or "cacheable"' ],
	[ 'xet_require_tls', 'yes', '"off", "on" or a variable' ],
	[ 'xet_ztensor_strict', 'yes', '"on" or "off"' ],
) {
	my ($name, $value, $words) = @$_;

	wrong($name, words("invalid value \"$value\" in \"$name\" directive, ",
		"it must be $words"), "$name $value;");
}

refused('xet_auth', words('invalid value "on" in "xet_auth" directive, it ',
	'must be "off" or "token"'),
	conf("$data location /api/ {\nxet_api;\n!!xet_auth on;\n}"));
wrong('xet_verify_body', qr/it must be "on" or "off"/, 'xet_verify_body yes;');
wrong('a limit', words('invalid parameter "rank=65" in "xet_ztensor_limits" ',
	'directive, it must be a number from 1 to 64'),
	'xet_ztensor_limits rank=65;');
wrong('a window', qr/it must be a power of 2 from 1024 to 2147483648/,
	'xet_ztensor_limits window=3000;');
wrong('no such limit', qr/it must be "manifest=", .* or "verify="/,
	'xet_ztensor_limits x=1;');
wrong('a limit twice', qr/duplicate parameter "rank=3" in/,
	'xet_ztensor_limits rank=2 rank=3;');

sub wrong_http {
	my ($name, $regex, $directive, @without) = @_;

	my $conf = conf($data . $api, "!!$directive");

	for my $other (@without) {
		$conf =~ s/^\s*(?!!!)$other .*\n//m;
	}

	refused($name, $regex, $conf);
}

my $pg = 'xet_postgres "host=/tmp"';

wrong_http('temp', words('invalid parameter "temp=x" in "xet_store" ',
	'directive, it must be "temp=anonymous" or "temp=named"'),
	"xet_store $store temp=x;");
wrong_http('sessions', words('invalid parameter "reads=65" in "xet_postgres" ',
	'directive, it must be a number from 1 to 64'),
	"$pg reads=65;");
wrong_http('times', qr/"lock_timeout=2d" in .* must be a time from 1ms to 24h/,
	"$pg lock_timeout=2d;");
wrong_http('no such parameter', words('invalid parameter "read=3" in ... be ',
	'"reads=", ... or "idle="'),
	"$pg read=3;");
wrong_http('twice', qr/duplicate parameter "reads=4" in "xet_postgres"/,
	"$pg reads=3 writes=1 reads=4;");

my $zone = 'xet_upload_zone $xet_client zone=z:1m';

wrong_http('a zone', qr/invalid zone "zone=z", it must be "zone=name:size"/,
	'xet_upload_zone $xet_client zone=z concurrent=1;');
wrong_http('uploads', qr/"concurrent=0" in .* a number from 1 to 1000000/,
	"$zone concurrent=0;");
wrong_http('bytes', qr/"bytes=1g" in .* "bytes=size\/time"/, "$zone bytes=1g;");
wrong_http('no such bound', qr/be "concurrent=number" or "bytes=size\/time"/,
	"$zone uploads=1;");
wrong_http('bounds twice', qr/duplicate parameter "bytes=2g\/1d"/,
	"$zone bytes=1g/1d bytes=2g/1d;");

wrong('a buffer', qr/"xet_read_buffer" must be at least 128k/,
	'xet_read_buffer 64k;');
wrong('a body buffer', qr/"xet_body_buffer" must be at least 16k/,
	'xet_body_buffer 8k;');
wrong('xorbs', qr/"xet_xorb_max_size" must/, 'xet_xorb_max_size 1k;');
wrong('a base', qr/"xet_api_base" must be empty or/, 'xet_api_base api/;');
refused('a plan', qr/"xet_plan_buffer" must be at least \d+k/, conf("$data"
	. "location /api/ {\n$auth xet_plan_terms 16777216;\n"
	. "!!xet_plan_buffer 64k;\n}"));
wrong('repos', qr/"xet_access repo" needs "xet_auth token"/,
	'xet_access repo;');
refused('no key', qr/"xet_auth token" needs "xet_token_key"/,
	conf("!!xet_auth token;\n$data location /api/ {\nxet_api;\n}"));
refused('nobody may', qr/"xet_api" needs "xet_auth"/,
	conf("$data location /api/ {\n!!xet_api;\n}"));
refused('no secret', qr/"xet_token" needs a secret/,
	conf("$data$api location = /token {\n!!xet_token;\n}"));

# --------------------------------------------------------------------------
# a bucket

my $keys = $t->dir() . '/s3.credentials';

spew($keys, "[default]\naws_access_key_id = k\naws_secret_access_key = s\n");

my ($worker) = Test::Xet::Nginx::user();
my @worker = $worker ? (getpwnam($worker))[2, 3] : ($>, 0 + $));

chown(@worker, $keys);
chmod(0600, $keys);

my $s3 = "xet_store s3://models/xet endpoint=http://127.0.0.1:9 "
	. "credentials=$keys path_style";
my $cache = "upstream xet_bucket {\nserver 127.0.0.1:9;\n}\n"
	. "proxy_cache_path " . $t->dir() . "/cache keys_zone=xet_bucket:1m;\n";
my $shipped = slurp(root() . '/conf/xet_location.conf');
my $proxied = slurp(root() . '/conf/xet_bucket.conf');
my $files = words('"xet_data" of location "/xorbs/" looks for xorbs in the ',
	'folder "...", but "xet_store" is a bucket: downloads fail ...',
	'include xet_bucket.conf after xet_location.conf, or write ',
	'"xet_data_mode presigned;"');

sub marked_data {
	return $_[0] =~ s/(location \/xorbs\/ \{\s+)xet_data/$1!!xet_data/r;
}

warns('bucket: what is for folders', $files, conf("xet_auth off;\n"
	. marked_data($shipped), "$s3;"));
warns('bucket: one of two clients', $files, conf("xet_auth off;\n"
	. marked_data($shipped) . "location /direct/ {\nxet_api;\n"
	. "xet_api_base /direct;\nxet_data_mode presigned;\n"
	. "client_max_body_size 80m;\n}", "$s3;"));
warns('bucket: an alias', words('"xet_data" of location "/cas/xorbs/" looks'),
	conf("$api location /cas/xorbs/ {\n!!xet_data;\nalias /tmp/;\n}",
		"$s3;\nxet_url_base $here/cas;"));
warns('bucket: the proxy is elsewhere', $files, conf("$api"
	. "location /xorbs/ {\n!!xet_data;\nerror_page 404 \@xet_error;\n}\n"
	. "location /other/ {\nxet_data;\nproxy_pass http://127.0.0.1:9;\n}\n"
	. "location \@xet_error {\nxet_error;\n}", "$s3;"));

silent("bucket: $_->[0]", conf("xet_auth off;\n$_->[1]", "$cache$s3;"))
	for [ 'both that are shipped', $shipped . $proxied ],
	[ 'presigned', "xet_data_mode presigned;\nxet_grants on;\n$shipped" ],
	[ 'presigned, and both', "xet_data_mode presigned;\n$shipped$proxied" ],
	[ 'a proxy', "$api location /xorbs/ {\nxet_data;\n"
		. "proxy_pass http://127.0.0.1:9;\n}" ],
	[ 'no location', $api ],
	[ 'a folder first', "$api location /xorbs/ {\nxet_data;\n"
		. "try_files \$uri \@more;\n}\n"
		. "location \@more {\nproxy_pass http://127.0.0.1:9;\n}" ],
	[ 'a folder, then a proxy', "$api location /xorbs/ {\nxet_data;\n"
		. "error_page 404 = \@more;\n}\n"
		. "location \@more {\nproxy_pass http://127.0.0.1:9;\n}" ],
	[ 'another name', "$api location /xorbs/ {\nxet_data;\n"
		. "rewrite ^ /other break;\n}" ];

# the error must name the line of "xet_store", which is marked

my $ca = $t->dir() . '/ca.pem';
my $refuse = sub {
	refused("bucket: $_[0]", $_[1], conf($api, "!!$s3 $_[2];"));
};

spew($ca, '');
$refuse->('no certificate there', qr/no certificate in ".*none\.pem"/,
	"trusted_certificate=none.pem");
$refuse->('no certificate in it', qr/no certificate in ".*ca\.pem"/,
	"trusted_certificate=$ca");
$refuse->("a public one: $_->[0]", words($_->[1]), "public_endpoint=$_->[0]")
	for [ 'store.example', 'the public endpoint "store.example" is not' ],
	[ 'ftp://store.example', 'the public endpoint "ftp://store.example"' ],
	[ 'https://store.example/x', 'is not "http://host" or' ],
	[ 'https://a@store.example', 'is not "http://host" or' ],
	[ '', 'invalid parameter "public_endpoint="' ],
	[ 'http://a public_endpoint=http://b', 'duplicate parameter' ];
refused('bucket: no path style, by an address', words('the bucket can\'t be ',
	'in front of the address "http://127.0.0.2"'), conf($api, '!!'
	. $s3 =~ s/127\.0\.0\.1:9/s3.example/r =~ s/ path_style//r
	. ' public_endpoint=http://127.0.0.2;'));
silent("bucket: $_", conf("xet_data_mode presigned;\n$api",
	"$s3 public_endpoint=$_;"))
	for 'https://store.example', 'http://store.example:8080/',
		'http://[::1]:9000', 'https://10.0.0.1';

SKIP: {
	skip('needs root', 1) if $> != 0;

	my $again = words('"credentials=', $keys, '" can\'t be read by "',
		$worker, '", the user of the workers: changed keys need ',
		'a reload');
	my $mode = sub {
		my ($owner, $group, $bits) = @_;

		chown($owner, $group, $keys);
		chmod($bits, $keys);
	};

	for ([ 0, 0, 0600 ], [ 0, 0, 0640 ], [ 0, $worker[1], 0600 ],
		[ $worker[0], 0, 0044 ], [ 0, $worker[1], 0604 ])
	{
		$mode->(@$_);
		warns(sprintf('keys: %d:%d %o', @$_), $again,
			conf("xet_data_mode presigned;\n$api", "!!$s3;"));
	}

	for ([ 0, $worker[1], 0640 ], [ $worker[0], 0, 0400 ],
		[ 0, 0, 0644 ])
	{
		$mode->(@$_);
		silent(sprintf('keys: %d:%d %o', @$_),
			conf("xet_data_mode presigned;\n$api", "$s3;"));
	}

	# the file itself is readable, but nobody can enter its folder

	mkdir($t->dir() . '/closed', 0700);
	rename($keys, my $closed = $t->dir() . '/closed/keys');
	symlink($closed, $keys);

	warns('keys: a folder above', $again,
		conf("xet_data_mode presigned;\n$api", "!!$s3;"));
	chmod(0711, $t->dir() . '/closed');
	silent('keys: a folder that may be entered',
		conf("xet_data_mode presigned;\n$api", "$s3;"));

	# workers open the certificates when they connect

	my ($status, $out) = run_command([ qw/ openssl req -x509 -newkey
		rsa:2048 -nodes -days 2 -subj \/CN=ca -keyout/,
		$t->dir() . '/ca.key', '-out', $ca ]);

	is($status, 0, 'a certificate') or diag($out);
	chmod(0600, $ca);
	warns('certificates', words('"trusted_certificate=', $ca, '" can\'t ',
		'be read by "', $worker, '", ...: they can\'t connect'),
		conf("xet_data_mode presigned;\n$api",
			"!!$s3 trusted_certificate=$ca;"));
	chmod(0644, $ca);
	silent('certificates that may be read',
		conf("xet_data_mode presigned;\n$api",
			"$s3 trusted_certificate=$ca;"));

	# workers that run as root can read any file

	$mode->(0, 0, 0600);
	silent('keys: workers of root', conf("xet_data_mode presigned;\n$api",
		"$s3;") =~ s/%%MAIN%%/$t->conf_main() =~ s!^user.*!user root;!mr
			/er);
}

# --------------------------------------------------------------------------
# nginx also prints the warnings when it starts or reloads

$t->write_conf(conf("$data location /api/ {\nxet_api;\nxet_auth off;\n}"
	=~ s/!!//gr));
$t->run();
ok(slurp($t->dir() . '/nginx.out') . $t->log()
	=~ /\[warn\].*"client_max_body_size" of location "\/api\/"/,
	'a start warns');

my $from = $t->log_size();
$t->write_conf(conf("$data location /api/ {\nxet_api;\nxet_auth off;\n"
	. "client_max_body_size 2m;\n}"));
$t->reload();
ok($t->wait_log(qr/\[warn\].*"client_max_body_size" of .* is 2048k/, 10, $from),
	'and a reload');

$t->done();
