#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Data locations together with nginx's other modules.  Whatever is configured
# in the location of xet_data or above it, the response is the signed bytes as
# stored, with 206, or an error.  The same holds at an edge.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Edge;
use Test::Xet::Process qw/ run_command slurp /;


Test::Xet->folder('filters and aliases of nginx over files');

# Each of these directives would change the body or the response.

my %beside = (
	gzip => 'gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;
		gzip_http_version 1.0;',
	gzip_static => 'gzip_static always;',
	sub => 'sub_filter a bb; sub_filter_once off; sub_filter_types *;',
	ssi => 'ssi on; ssi_types *;',
	addition => 'add_before_body /text; add_after_body /text;
		addition_types *;',
	charset => 'charset koi8-r; source_charset windows-1251;
		charset_types *;',
	utf8 => 'charset utf-8; source_charset windows-1251;
		charset_types *;',
	headers => 'add_header X-Other yes always; add_trailer X-End yes;
		expires 30d; userid on;',
	cache_control => 'expires max; add_header Cache-Control "public";
		add_header Expires "Tue, 01 Jan 2087 00:00:00 GMT";',
	output => 'sendfile off; output_buffers 1 512; postpone_output 0;',
	directio => 'directio 4k; aio threads=xet;',
	mp4 => 'mp4;',
	flv => 'flv;',
	index => 'autoindex on; random_index on;',
	cached => 'open_file_cache max=10; open_file_cache_errors on;',
	if => 'if ($arg_e) { set $seen 1; }',
	if_header => 'if ($request_method) { add_header X-If yes; }',
	except => 'limit_except POST { allow all; }',
	nested => 'location ~ /default/ { add_header X-Nested yes; }',
	any => 'satisfy any; allow all;',
	mirror => 'mirror /text;',
);

# Some nginx builds lack some of these modules.

my $version = Test::Xet::Nginx::version();

my %needs = (
	addition => 'addition', flv => 'flv', gzip_static => 'gzip_static',
	index => 'random_index', mp4 => 'mp4', sub => 'sub'
);

delete @beside{ grep { $version !~ /--with-http_$needs{$_}_module/ }
	keys %needs };

my $gunzip = $version =~ /--with-http_gunzip_module/ ? 'gunzip on;' : '';

my @transforms = grep { defined }
	@beside{qw/ gzip sub ssi addition charset mirror /};

my $maps = <<'EOC';
charset_map windows-1251 koi8-r { 80 E1; 61 62; 62 61; }
    charset_map windows-1251 utf-8 { 80 D082; 61 C3A4; }
EOC

my $http2 = $version =~ /--with-http_v2_module/
	&& `curl -V 2>&1` =~ /^Features:.* HTTP2\b/m;

my $text = 'location = /text { return 200 "a text\n"; }';

my $t = Test::Xet->new(log => 'info', http => $maps, locations => '',
	allow => [ qr/no "charset_map"/ ]);

$t->write_conf(conf());
$t->run();

# a file of one xorb whose second chunk begins at the byte $first

my $data = 'ab' x 25000 . random_bytes(1, 100000);
my $file = $t->upload($data, scheme => 'none', sizes => [ 50000 ]);
my $xorb = $file->{xorbs}[0];
my ($path, $first, $last) = signed($t, $file->{hash});
my $other = $t->upload(random_bytes(7, 150000), scheme => 'none',
	sizes => [ 50000 ]);
my ($other_path) = signed($t, $other->{hash});
my ($several, @list) = Test::Xet::Edge::several($t);
my $total = $xorb->{stored_size};
my $want = substr($xorb->{bytes}, $first, $last - $first + 1);

is($first, 0, 'the range begins with text');
is(length($want), 50008, 'a range of one chunk');

# --------------------------------------------------------------------------
# directives in the location of xet_data

for my $name (sort keys %beside) {
	exact("$name:", "/$name$path");
}

exact('all at server level:', $path, port => 8082);

is($t->get("/if_header$path", { Range => "bytes=$first-$last" })
	->header_value('X-If'), 'yes', 'if in location: true');
is($t->get("/headers$path", { Range => "bytes=$first-$last" })
	->header_value('X-Other'), 'yes', 'add_header is applied');

# a URL without signed ranges returns the complete xorb

my ($whole) = signed($t, $file->{hash}, '/whole');

for my $case ([ undef, 200, 0, $total - 1 ], [ '5-', 206, 5, $total - 1 ]) {
	my ($range, $status, $a, $b) = @$case;
	my $r = $t->get($whole, { 'Accept-Encoding' => 'gzip',
		Range => defined $range ? "bytes=$range" : undef },
		port => 8082);

	is($r->{status}, $status, "cacheable: $status");
	ok($r->{body} eq substr($xorb->{bytes}, $a, $b - $a + 1),
		"cacheable: $status: bytes");
}

# --------------------------------------------------------------------------
# a response that other modules have changed becomes an error, and none of its
# bytes are sent

my $r = $t->get("/tried$path", { Range => "bytes=$first-$last",
	'X-Try' => "/tried$other_path" =~ s/\?.*//r });

wrong('try_files with another file', $r, 500);
logged('it is for another URI');

$r = $t->get("/filled$path", { Range => "bytes=$first-$last" });

wrong('a proxy that returns the complete xorb', $r, 502);
logged('it is not a range');

$r = $t->get("/shifted$path", { Range => "bytes=$first-$last" });

wrong('a proxy that returns another range', $r, 502);
logged('it is another range');


$r = $t->get("/coded$path", { Range => "bytes=$first-$last" });

wrong('a content coding', $r, 500);
is($r->json()->{error}{code}, 'internal_error', 'a content coding: code');
is($r->{error}, undef, 'a content coding: a complete response');

if ($http2) {
	my ($status, $text) = run_command([ 'curl', '-sS', '-m', 30,
		'--http2-prior-knowledge', '-r', "$first-$last", '-w',
		' %{http_version} %{http_code}',
		$t->url("/coded$path", 8083) ]);

	is_deeply([ $status, $text ], [ 0, '{"error":{"code":"internal_error",'
		. '"message":"internal error"}} 2 500' ],
		'a content coding: HTTP/2');
}

logged('it has a content coding');


$r = $t->get("/unchecked$path");

wrong('a response before the check', $r, 500);
logged('the signature was not checked');


wrong('no signature for who has none', $r = $t->get("/redirect$path"), 302);
unlike($r->header_value('Location'), qr/s=/, 'no signature in the redirect');

# --------------------------------------------------------------------------
# other methods: the response does not depend on whether the xorb exists

$t->remove_copy($t->copy($other->{xorbs}[0]{hash}));
is($t->get($other_path, { Range => 'bytes=0-9' })->{status}, 404, 'it is');

for my $method (qw/ POST PUT DELETE PATCH OPTIONS PROPFIND MKCOL COPY MOVE /,
	'X')
{
	my @answers = map { my $at = $_; map { $t->http($method, $at, {
			Range => 'bytes=0-9', Destination => '/dav/xorbs/x' },
			$_) } undef, 'body' }
		map { my $base = $_; map { "$base$_" } $path, $other_path,
			$path =~ s/s=.*/s=x/r } '', '/except', '/dav';
	my %answers = map { my $r = $_; join("\n", $r->{status}, $r->{body},
		$r->header_value('Allow')) => 1 } @answers;

	is(scalar(keys %answers), 1, "$method: one answer");
	is($answers[0]{status}, 405, "$method: status");
	is($answers[0]->header_value('Allow'), 'GET, HEAD',
		"$method: Allow");
	is($answers[0]->json()->{error}{code}, 'method_not_allowed',
		"$method: code");
}

exact('all are still there:', $path, port => 8081);

# --------------------------------------------------------------------------
# how long caches may store a response

for my $case ([ '206', {} ], [ '304', { 'If-None-Match' => '*' } ]) {
	my ($status, $headers) = @$case;

	for my $base ('', '/cache_control', '/headers') {
		my $r = $t->get("$base$path", { Range => "bytes=$first-$last",
			%$headers });

		is($r->{status}, $status, "$status $base: status");
		lives("$status $base", $r, $path);
	}
}

$r = $t->get("/cache_control$other_path", { Range => 'bytes=0-9' });
is($r->{status}, 404, '404: status');
is_deeply($r->{headers}{'cache-control'}, [ 'no-store' ], '404: no-store');
is($r->header_value('Expires'), undef, '404: no Expires');

for my $r ($t->get("/api/v1/xorbs/default/$xorb->{hash}"),
	$t->get("/api/v1/xorbs/default/$xorb->{hash}",
		{ Range => 'bytes=5-9' }))
{
	like($r->{status}, qr/^20[06]$/, 'GET xorbs');
	is_deeply($r->{headers}{'cache-control'}, [ 'no-store' ],
		'GET xorbs: whose it is depends on the token');
	is($r->header_value('Expires'), undef, 'GET xorbs: no Expires');
}

# --------------------------------------------------------------------------
# an edge with all directives at http level

my $edge = Test::Xet::Edge::edge($t, http => "$maps\n" . join("\n",
	grep { !/add_before_body|mirror/ } @transforms) . $gunzip);

$edge->run();
$t->write_conf(conf());

for my $round (1 .. 2) {
	exact("edge $round:", $path, on => $edge, port => 8080);

	$r = $edge->get($several, { Range => 'bytes=' . join(',', @list),
		'Accept-Encoding' => 'gzip' });
	is($r->{status}, 206, "edge $round: several ranges");
	is_deeply([ map { "$_->{start}-$_->{end}" } @{ $r->parts() } ],
		\@list, "edge $round: several ranges, parts");
	lives("edge $round: several ranges", $r, $several);
}

$r = $edge->get($other_path, { Range => 'bytes=0-9' });
is($r->{status}, 404, 'edge: 404');
is_deeply($r->{headers}{'cache-control'}, [ 'no-store' ],
	'edge: 404: no-store');

$edge->check();
$edge->remove();

# open_file_cache keeps files of the store open in a worker.  So replace the
# workers: done() reports such files.

$t->reload();
$t->done();

# --------------------------------------------------------------------------

sub conf {
	my $locations = join('', map { location($_, $beside{$_}) }
		sort keys %beside);

	$locations .= location('dav', 'dav_methods PUT DELETE MKCOL COPY MOVE;
		dav_access all:rw;');
	$locations .= location('tried', 'try_files $http_x_try =404;');
	$locations .= location('coded',
		'add_header Content-Encoding gzip always;');
	$locations .= location('unchecked', 'return 200 "text";');
	$locations .= location('redirect',
		'return 302 /other?$xet_data_args;');

	my $conf = Test::Xet::default_conf();

	$conf =~ s/%%LOCATIONS%%/api() . "$text\n$locations" . proxies()/e;
	$conf =~ s/(?=listen )/listen 127.0.0.1:%%PORT_8083%% http2;\n/
		if $http2;
	$conf =~ s/\}\s*\z//;

	return "$conf\n" . <<"EOC" . "\n}\n";
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        root %%STORE%%;

        location /xorbs/ {
            xet_data;
        }

        location /all/ {
            alias %%STORE%%/;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        root %%STORE%%;
        $text
        @transforms
        $gunzip
        userid on;
        expires 30d;

        location /xorbs/ {
            xet_data;
        }
    }
EOC
}

sub api {
	return <<'EOC';
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;
        }

        location /several/ {
            xet_api;
            xet_api_base /several;
            xet_auth off;
            xet_url_ranges 8;
        }

        location /whole/ {
            xet_api;
            xet_api_base /whole;
            xet_auth off;
            xet_url_mode cacheable;
        }

        location /xorbs/ {
            xet_data;
        }

        location @xet_error {
            xet_error;
        }

EOC
}

sub location {
	my ($name, $more) = @_;

	return <<"EOC";
        location /$name/xorbs/ {
            %%DATA_ALIAS%%
            error_page 500 502 \@xet_error;
            $more
        }

EOC
}

# Returns locations with origins that ignore the requested range.

sub proxies {
	return <<'EOC';
        location ~ ^/filled/(xorbs/.*) {
            xet_data;
            proxy_set_header Range "";
            proxy_pass http://127.0.0.1:%%PORT_8081%%/all/$1;
        }

        location ~ ^/shifted/(xorbs/.*) {
            xet_data;
            proxy_set_header Range bytes=100-200;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/all/$1;
        }
EOC
}

# Returns the path of the first chunk's URL, and its range.

sub signed {
	my ($t, $hash, $base) = @_;

	$base //= '/api';

	my $info = $t->get("$base/v1/reconstructions/$hash",
		{ Range => 'bytes=0-49999' })->json()->{fetch_info};
	my ($entry) = map { @$_ } values %$info;

	return $entry->{url} =~ s!^http://[^/]+!!r,
		@{ $entry->{url_range} }{qw/ start end /};
}

# Checks that all ways to request the signed bytes return exactly these bytes.

sub exact {
	my ($name, $uri, %o) = @_;

	my $on = delete $o{on} || $t;
	my %headers = (Range => "bytes=$first-$last",
		'Accept-Encoding' => 'gzip, br');

	for my $case ([ 'all of it', $first, $last ], [ 'within', 100, 299 ],
		[ 'a byte', $last, $last ])
	{
		my ($what, $a, $b) = @$case;
		my $r = $on->get($uri, { %headers, Range => "bytes=$a-$b" },
			%o);

		ok($r->{status} == 206 && !$r->{error}
			&& !defined $r->header_value('Content-Encoding')
			&& $r->header_value('Content-Range')
				eq "bytes $a-$b/$total"
			&& $r->{body} eq substr($xorb->{bytes}, $a,
				$b - $a + 1), "$name $what")
			or diag("status $r->{status}, ", length($r->{body}),
				' bytes, ', $r->{error} // '', ' ',
				substr($r->{raw} // '', 0, 600));
	}

	is_deeply([ map { $_->{status} }
		$on->get($uri, { 'Accept-Encoding' => 'gzip' }, %o),
		$on->get($uri, { %headers, Range => 'bytes=0-' }, %o),
		$on->get($uri =~ s/s=.*/s=x/r, \%headers, %o),
		$on->get($uri =~ s/\?.*//r, \%headers, %o),
		$on->get($uri, { %headers, 'If-Range' => '"x"' }, %o) ],
		[ (403) x 5 ], "$name nothing else");

	my $r = $on->head($uri, \%headers, %o);

	is_deeply([ $r->{status}, $r->header_value('Content-Length') ],
		[ 206, $last - $first + 1 ], "$name HEAD");
	is($on->get($uri, { %headers, 'If-None-Match' => '*' }, %o)
		->{status}, 304, "$name 304");

	http2("$name HTTP/2", $uri) if $http2 && $on == $t;
}

sub http2 {
	my ($name, $uri) = @_;

	my $out = $t->dir() . '/curl.out';
	my ($status, $text) = run_command([ 'curl', '-sS', '-m', 30,
		'--http2-prior-knowledge', '-o', $out, '-H',
		'Accept-Encoding: gzip', '-r', "$first-$last", '-w',
		'%{http_version} %{http_code}', $t->url($uri, 8083) ]);

	is($text, '2 206', $name);
	ok($status == 0 && slurp($out) eq $want, "$name: bytes");
}

# Checks that the response has no byte of a xorb, and has an error status.

sub wrong {
	my ($name, $r, $status) = @_;

	is($r->{status}, $status, $name);
	ok(length($r->{body}) < 500
		&& index($r->{body}, substr($xorb->{bytes}, 100, 20)) < 0,
		"$name: no data");
}

sub logged {
	my ($why) = @_;

	ok($t->wait_log(qr/not match the signed URL: $why/),
		"a line: $why");
}

# Checks that caches may store the response as long as its URL is valid, and
# that only one header says so.

sub lives {
	my ($name, $r, $url) = @_;

	my ($e) = $url =~ /[?&]e=(\d+)/;
	my @control = @{ $r->{headers}{'cache-control'} || [] };
	my @expires = @{ $r->{headers}{expires} || [] };

	is(scalar(@control), 1, "$name: one Cache-Control");

	my ($age) = ($control[0] // '')
		=~ /\Apublic, max-age=(\d+), immutable\z/;
	my $left = $e - time();

	# two clocks are compared, and one of them may be a few milliseconds
	# behind

	ok(defined $age && $age >= $left - 1 && $age < $left + 60,
		"$name: Cache-Control") or diag("@control, $left");
	is_deeply(\@expires, [ http_time($e) ], "$name: Expires");
}

sub http_time {
	my ($s, $m, $h, $day, $month, $year, $wday) = gmtime($_[0]);

	return sprintf('%s, %02d %s %d %02d:%02d:%02d GMT',
		(qw/ Sun Mon Tue Wed Thu Fri Sat /)[$wday], $day,
		(qw/ Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec
		/)[$month], $year + 1900, $h, $m, $s);
}
