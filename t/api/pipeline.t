#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Every request gets one response, in the order of the requests.  Covers each
# route of the router's table, each version and each method, for objects that
# are empty, of one byte, usual, unknown and malformed.  Requests are pipelined
# on keepalive connections, and sent as streams of one HTTP/2 connection.
#
# The expected response is that of the same request on its own connection.  Each
# request is followed by a marker, a request for bytes that no other request
# asks for.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Files;
use Test::Xet::Process qw/ module_table patience run_command slurp /;
use Test::Xet::Ztensor;

# Over TLS: curl 7.88 does not reuse a connection that an option makes it start
# with HTTP/2.

my $http2 = 1;

for my $module (qw/ http_v2 http_ssl /) {
	$http2 = 0 if Test::Xet::Nginx::version() !~ /--with-${module}_module/;
}

$http2 = 0 if `curl -V 2>&1` !~ /^Features:.* HTTP2\b/m;

my $t = Test::Xet->new(
	workers => 2, timeout => 900,
	http => 'keepalive_requests 100000;',
	server => $http2 ? <<'EOC' : '');
listen               127.0.0.1:%%PORT_8082%% ssl http2;
        ssl_certificate      %%DIR%%/tls.pem;
        ssl_certificate_key  %%DIR%%/tls.key;
EOC

if ($http2) {
	my ($status, $out) = run_command([ qw/ openssl req -x509 -nodes
		-newkey rsa:2048 -days 2 -subj /, '/CN=localhost',
		'-keyout', $t->dir() . '/tls.key',
		'-out', $t->dir() . '/tls.pem' ]);

	die "openssl: $out" if $status != 0;
}

$t->run();

# --------------------------------------------------------------------------
# the routes

sub routes {
	my (%routes, @order);

	for (@{ module_table('routes') }) {
		push @order, $_->{form} unless $routes{$_->{form}};
		$routes{$_->{form}} = [ $_->{form},
			map { $_ eq '' ? '' : "$_/" } @{ $_->{versions} } ];
	}

	return map { $routes{$_} } @order;
}

# --------------------------------------------------------------------------
# the objects of the requests

my $unknown = '0123456789abcdef' x 4;

my $bytes = random_bytes(3, 300000);
my $usual = $t->upload($bytes);
my $one = $t->upload('1');
my $known = $usual->{xorbs}[0];

my $plain = random_bytes(5, 200000);

my $skip = "\x50\x2a\x4d\x18" . pack('V', 1 << 20) . "\0" x (1 << 20);
my @indices = (indices => pack('Q<*', 0, 3), indptr => pack('Q<*', 0, 1, 2));

my @components = (
	[ 'raw/0', { shape => [ 0 ], data => '' } ],
	[ 'raw/1', { shape => [ 1 ], dtype => 'u8', data => 'r' } ],
	[ 'raw/n', { shape => [ 50000 ], data => $plain } ],
	[ 'zstd/0', { shape => [ 0 ], data => zstd_frame('') } ],
	[ 'zstd/1', { shape => [ 1 ], dtype => 'u8',
		data => zstd_frame('z') } ],
	[ 'zstd/n', { shape => [ 50000 ], data => zstd_frame($plain) } ],
	[ 'zstd/big', { shape => [ 8, 50000 ],
		data => zstd_frame($plain x 8) } ],

	# more zstd frames without content than the server decodes at a time

	[ 'zstd/skip', { shape => [ 0 ], data => $skip . $skip } ],
	[ 'zstd/none', { shape => [ 0 ], data => '' } ],
	[ 'zstd/bad', { shape => [ 1 ], data => 'no frame' } ],
	[ 'zstd/short', { shape => [ 2 ], data => zstd_frame('1234') } ],
	[ 'invalid', { shape => [ 2 ], data => '1' } ],
	[ 'csr', { format => 'sparse_csr', shape => [ 2, 4 ], components => [
		[ 'values', { data => 'v' x 8 } ],
		[ 'indices', { dtype => 'u64', data => $indices[1] } ],
		[ 'indptr', { dtype => 'u64',
			data => zstd_frame($indices[3]) } ] ] } ]
);

for (@components) {
	my ($name, $o) = @$_;

	$o->{encoding} = 'zstd' if $name =~ /^zstd/;
	$o->{components}[2][1]{encoding} = 'zstd' if $name eq 'csr';
}

my $ztensor = $t->upload(zt_file(\@components)->{bytes});
my $no_objects = $t->upload(zt_file([])->{bytes});

my %file = (
	empty => '0' x 64, one => $one->{hash}, usual => $usual->{hash},
	ztensor => $ztensor->{hash}, 'no objects' => $no_objects->{hash},
	unknown => $unknown, malformed => 'xyz'
);

my %xorb = (
	usual => "default/$known->{hash}",
	one => "default/$one->{xorbs}[0]{hash}", empty => 'default/' . '0' x 64,
	unknown => "default/$unknown", 'bad prefix' => "a~b/$unknown",
	malformed => 'default/xyz'
);

my %chunk = (%xorb, usual => "default/$known->{chunks}[0]{hash}",
	one => "default/$one->{xorbs}[0]{chunks}[0]{hash}");

my %body = ('empty' => '', 'one byte' => 'x', 'no JSON' => '[]' x 100);

# A file that DELETE requests may remove.

my $victim = 'to be deleted';
my $doomed = $t->upload($victim)->{hash};

my @objects = map { my $name = $_->[0]; map { [ name => $name,
	$name eq 'csr' ? (role => $_) : () ] }
	$name eq 'csr' ? qw/ values indices indptr coords / : '' }
	@components;

# lists of query arguments to try, by route name: the path without ":hash" and
# the like

my %query = (
	zt => [ [], [ limit => 1 ], [ limit => 0 ], [ after => 99 ],
		[ prefix => 'none' ] ],
	'zt/object' => [ [], [ name => 'zstd/0' ], [ i => 99 ], [ i => 'x' ] ],
	'zt/data' => [ [], [ i => 99 ], [ name => 'csr' ],
		[ name => 'raw/n', rows => '5:5' ],
		[ name => 'raw/n', rows => '5:6' ],
		[ name => 'raw/0', rows => '0:0' ],
		map { my $o = $_; map { [ @$o, form => $_ ] }
			qw/ stored decoded / } @objects ],
	'zt/reconstruction' => [ [], @objects ],
	'zt/verify' => [ [], [ i => 99 ], @objects ],
	reconstructions => [ [] ]
);

my @none = ([]);

# request headers to try, by route name

my @ranges = ([], [ Range => 'bytes=0-0' ], [ Range => 'bytes=-1' ],
	[ Range => 'bytes=0-0,2-3' ], [ Range => 'bytes=9999999-' ],
	[ Range => 'bytes=' ], [ 'If-None-Match' => '*' ],
	[ 'If-Match' => '"x"' ]);

my %headers = (
	files => \@ranges, xorbs => \@ranges, reconstructions => \@ranges,
	'zt/data' => [ @ranges, [ 'Accept-Encoding' => 'zstd' ] ],
	'zt/reconstruction' => [ @ranges[0, 1, 4] ],
	'file-chunk-hashes' => [ [], [ 'X-Range-Dirty' => 'bytes=0-0' ],
		[ 'X-Range-Dirty' => 'bytes=9999999-9999999' ],
		[ 'X-Range-Dirty' => 'x' ] ]
);

my @methods = qw/ GET HEAD OPTIONS PUT POST DELETE PATCH /;

# Returns all requests of a route and version: [ method, uri, headers, body ].

sub requests {
	my ($form, $version) = @_;

	my %objects = $form !~ /:/ ? ('' => '')
		: $form !~ /:prefix/ ? %file
		: $form =~ /^chunk/ ? %chunk : %xorb;
	my @requests;

	for my $object (sort keys %objects) {
		my $path = $form =~ s!:grant!'a' x 64!er
			=~ s!(?::prefix/)?:hash!$objects{$object}!r;

		push @requests, of_object($form, $object,
			"/api/$version$path");
	}

	return @requests;
}

sub of_object {
	my ($form, $object, $uri) = @_;

	my $name = $form =~ s!/:\w+!!gr;
	my $rich = $object =~ /^(?:empty|one|usual|ztensor)\z/;
	my $queries = $name =~ /^zt/ && $object !~ /ztensor/
		? [ [], [ i => 0 ] ] : $query{$name} || \@none;
	my @requests;

	$queries = batches() if $form eq 'reconstructions';

	for my $method (@methods) {

		if ($method =~ /^(?:PUT|POST|PATCH)\z/) {
			push @requests, map { [ $method, $uri, [], $body{$_} ] }
				sort keys %body;
			next;
		}

		my $at = $uri;

		# DELETE must not delete the files that other requests use; it
		# gets $doomed

		if ($method eq 'DELETE' && $name eq 'files') {
			next if $object ne 'usual' && stored($uri);
			$at =~ s/$usual->{hash}/$doomed/;
		}

		if ($method !~ /^(?:GET|HEAD)\z/) {
			push @requests, [ $method, $at, [] ];
			next;
		}

		for my $query (@$queries) {
			push @requests, map { [ $method, $at
				. zt_args(@$query), $_ ] }
				@{ $rich && $headers{$name} || \@none };
		}
	}

	return @requests;
}

# Returns the query arguments of reconstructions without a hash in the path.

sub batches {
	return [ [], map { [ file_id => $file{$_} ] } sort keys %file ];
}

# --------------------------------------------------------------------------
# responses

# Removes what differs between two responses: signatures, times in a shard, and
# the number of sessions.

sub fingerprint {
	my ($q, $r) = @_;

	my $body = $r->{body};

	$body =~ s/"url":"[^"?]*\K\?[^"]*//g;
	$body =~ s/.{56}\z//s if $body =~ /^HFRepoMetaData/;
	$body =~ s/:\d+/:n/g if $body =~ /"postgres"/;

	# the numbers of sessions differ in digits, so the length varies, even
	# for HEAD

	my $length = $q->[1] =~ m!/health\z! ? undef
		: ($r->header_value('Content-Length'))[0];

	return join(' ', $r->{status}, map({ $_ // '-' } $length,
		($r->header_value('Content-Type') // '')
			=~ s/boundary=.*//r),
		$r->{error} // '', masked($body));
}

# Masks the boundary, which is random.

sub masked {
	my ($body) = @_;

	my ($boundary) = $body =~ /\A\r\n--([0-9a-f]{20,32})\r\n/;

	$body =~ s/$boundary/-/g if $boundary;

	return $body;
}

sub short { return substr($_[0], 0, 300) =~ s/[^ -~]/./gr }

sub title {
	my ($q) = @_;

	return join(' ', $q->[0], $q->[1] =~ s/[0-9a-f]{60}/../gr, @{ $q->[2] },
		defined $q->[3] ? 'of ' . length($q->[3]) : ());
}

sub stored {
	my ($uri) = @_;

	my ($hash) = $uri =~ m!/([0-9a-f]{64})\z! or return 0;

	return $t->head("/api/v1/files/$hash")->{status} == 200;
}

sub restore {
	my ($q) = @_;

	$t->upload($victim) if $q->[0] eq 'DELETE' && $q->[1] =~ /$doomed/;
}

# Sends a request on its own connection, which is closed after it.  Returns
# undef if the request fails.

sub alone {
	my ($q, $wrong) = @_;

	my ($method, $uri, $headers, $body) = @$q;

	restore($q);

	my $r = $t->http($method, $uri, $headers, $body);

	if ($r->{error}) {
		push @$wrong, title($q) . ": alone: $r->{error}";
		return;
	}

	push @$wrong, title($q) . ': a fault: ' . short($r->{body})
		if $r->{status} >= 500 && $r->{status} != 501;

	push @$wrong, title($q) . ': a body for HEAD'
		if $method eq 'HEAD' && $r->{body} ne '';

	return $r;
}

# Returns the marker request for index i: eight bytes of a file.

sub marker {
	my ($i) = @_;

	my $at = 16 * $i;

	return [ [ 'GET', "/api/v1/files/$usual->{hash}",
		[ Range => "bytes=$at-" . ($at + 7) ] ],
		substr($bytes, $at, 8) ];
}

sub request_text {
	my ($q) = @_;

	my ($method, $uri, $headers, $body) = @$q;
	my $host = $t->url('') =~ s!^http://!!r;
	my $text = "$method $uri HTTP/1.1\r\nHost: $host\r\n";
	my @headers = @$headers;

	while (my ($name, $value) = splice(@headers, 0, 2)) {
		$text .= "$name: $value\r\n";
	}

	$text .= 'Content-Length: ' . length($body) . "\r\n" if defined $body;

	return "$text\r\n" . ($body // '');
}

# Sends all requests on keepalive connections, twelve at a time, with a marker
# after each.  A server that closes a connection announces this; requests
# without a response are sent again.

sub pipelined {
	my ($cases, $wrong) = @_;

	my ($i, $c, $closes) = (0, undef, 0);

	while ($i < @$cases) {
		$c //= $t->connect(timeout => 10);

		my $last = $i + 11 < $#$cases ? $i + 11 : $#$cases;

		restore($_->[0]) for @$cases[$i .. $last];

		$c->send(join('', map { request_text($cases->[$_][0])
			. request_text(marker($_)->[0]) } $i .. $last));

		for (; $i <= $last; $i++) {
			my $closed = one_answer($c, $cases->[$i], $i, $wrong);

			next if !$closed;

			$c->close();
			$c = undef;
			$closes++;
			$i++;
			last;
		}
	}

	$c->close() if $c;

	return $closes;
}

# Reads one response and its marker; returns 1 if the connection is unusable
# after that.

sub one_answer {
	my ($c, $case, $i, $wrong) = @_;

	my ($q, $alone) = @$case;
	my $r = $c->response($q->[0]);
	my ($want, $have) = map { fingerprint($q, $_) } $alone, $r;

	if ($have ne $want) {
		push @$wrong, title($q) . ': ' . short($have) . ' instead of '
			. short($want);
		return 1;
	}

	return 1 if ($r->header_value('Connection') // '') eq 'close';

	my $marker = $c->response('GET');

	if ($marker->{status} != 206 || $marker->{body} ne marker($i)->[1]) {
		push @$wrong, title($q) . ': behind it ' . short($marker->{raw})
			. ($marker->{error} // '');
		return 1;
	}

	return 0;
}

# Sends all requests by curl over one HTTP/2 connection.

sub multiplexed {
	my ($cases, $wrong) = @_;

	my $dir = $t->dir() . '/h2';
	my $base = 'https://127.0.0.1:' . $t->port(8082);
	my @config;

	system('rm', '-rf', $dir);
	mkdir($dir) or die "mkdir: $!\n";

	for my $i (0 .. $#$cases) {
		push @config, curl_config($cases->[$i][0], $base, "$dir/$i");
		push @config, curl_config(marker($i)->[0], $base, "$dir/$i.m");
		restore($cases->[$i][0]);
	}

	my $config = $t->write_file('h2.conf', join("next\n", @config));

	my ($status, $out) = run_command([ 'curl', '-sS', '-K', $config ],
		timeout => 300);

	push @$wrong, "curl: $status " . short($out) if $status != 0;

	my ($answers, $connects) = (0, 0);

	for (split(/\n/, $out)) {
		$answers += /^2 / ? 1 : 0;
		$connects += $1 if /^2 (\d+)/;
	}

	push @$wrong, "$answers answers on $connects connections"
		if $answers != 2 * @$cases || $connects != 1;

	for my $i (0 .. $#$cases) {
		stream_answer($cases->[$i], $i, "$dir/$i", $wrong);
	}
}

# Formats a request for curl's config parser, with escaped quotes and
# backslashes.

sub curl_config {
	my ($q, $base, $file) = @_;

	my ($method, $uri, $headers, $body) = @$q;
	my @lines = ("url = $base$uri", "output = $file",
		"dump-header = $file.h", 'max-time = ' . patience(10),
		'write-out = "%{http_version} %{num_connects}\n"',
		'globoff', 'path-as-is', 'http2', 'insecure',
		$method eq 'HEAD' ? 'head' : "request = $method");
	my @headers = @$headers;

	while (my ($name, $value) = splice(@headers, 0, 2)) {
		push @lines, 'header = "' . "$name: $value" =~ s/"/\\"/gr . '"';
	}

	if (defined $body) {
		push @lines, "data-binary = \"$body\"",
			'header = "Content-Type:"';
	}

	return join("\n", @lines) . "\n";
}

sub stream_answer {
	my ($case, $i, $file, $wrong) = @_;

	my ($q, $alone) = @$case;
	my $marker = stream_response('GET', "$file.m");
	my ($want, $have) = map { fingerprint($q, $_) } $alone,
		stream_response($q->[0], $file);

	push @$wrong, title($q) . ', HTTP/2: ' . short($have) . ' instead of '
		. short($want) if $have ne $want;
	push @$wrong, title($q) . ', HTTP/2: behind it '
		. short($marker->{body})
		if $marker->{status} != 206
			|| $marker->{body} ne marker($i)->[1];
}

sub stream_response {
	my ($method, $file) = @_;

	my $head = -f "$file.h" ? slurp("$file.h") : '';
	my $r = Test::Xet::HTTP::Response->new('HEAD', 0);

	$head =~ s!\AHTTP/2 !HTTP/1.1 !;
	$r->feed(\$head, 1);
	$r->{body} = $method ne 'HEAD' && -f $file ? slurp($file) : '';

	return $r;
}

# --------------------------------------------------------------------------

my $n = 0;

sub hold {
	my ($title, @requests) = @_;

	my (@cases, @wrong);

	for my $q (@requests) {

		# the first upload may create an object and say so in its
		# response

		alone($q, []) if $q->[0] =~ /^P/;

		my $r = alone($q, \@wrong) or next;

		push @cases, [ $q, $r ];
	}

	is(join("\n", @wrong), '', "$title: alone");

	@wrong = ();
	my $closes = pipelined(\@cases, \@wrong);

	is(join("\n", @wrong), '', "$title: " . scalar(@cases)
		. " pipelined, $closes closed");

	$n += @cases;

	SKIP: {
		skip('no HTTP/2', 1) unless $http2;

		@wrong = ();
		multiplexed(\@cases, \@wrong);

		is(join("\n", @wrong), '', "$title: over HTTP/2");
	}
}

for my $route (routes()) {
	my ($form, @versions) = @$route;

	hold("$_$form", requests($form, $_)) for @versions;
}

hold('telemetry of the root', of_object('telemetry', '',
	'/v1/telemetry'));

# --------------------------------------------------------------------------
# data URLs, which the router does not serve

sub data_requests {
	my ($hash) = @_;

	my $info = $t->get("/api/v1/reconstructions/$hash")->json()
		->{fetch_info};
	my ($part) = map { @$_ } values %$info;
	my ($uri) = $part->{url} =~ m!^https?://[^/]+(/.*)!;
	my ($first, $last) = @{ $part->{url_range} }{qw/ start end /};

	my @ranges = ([], [ Range => "bytes=$first-$last" ],
		[ Range => "bytes=$first-" . ($last + 1) ],
		[ Range => 'bytes=9999999-' ], [ Range => 'x' ]);

	return map { my $at = $_; map { my $method = $_;
		map { [ $method, $at, $_ ] } @ranges } @methods }
		$uri, $uri =~ s/.\z//r, $uri =~ s/\?.*//r;
}

hold('data URLs', map { data_requests($_) } $usual->{hash}, $one->{hash},
	$ztensor->{hash});

cmp_ok($n, '>', 1000, "$n requests");

# --------------------------------------------------------------------------
# a truncated response resets only its own stream (HTTP/1.1 is in
# t/api/file_get_store.t)

SKIP: {
	skip('no HTTP/2', 4) unless $http2;

	my @xorbs = map { send_xorb($t, mix($_, 1_000_000),
		sizes => [ 100000 ]) } 101, 102;
	my $whole = register_file($t, [ [ $xorbs[0] ] ]);
	my $hurt = register_file($t, [ [ $xorbs[0] ], [ $xorbs[1] ] ]);
	my $dir = $t->dir();

	$t->cut_copy($t->copy($xorbs[1]{hash}), 500_000);
	$t->allow(qr/xet: chunk \d+ of xorb $xorbs[1]{hash}\S* can't be read/);

	my ($status, $out) = run_command([ qw/ curl -sSkZ --http2 -w/,
		'%{exitcode} %{http_version} %{http_code}\n',
		map { ('-o', "$dir/broken.$_->[0]", 'https://127.0.0.1:'
		. $t->port(8082) . "/api/v1/files/$_->[1]{hash}") }
		[ 1, $whole ], [ 2, $hurt ], [ 3, $whole ] ]);

	is(join(' | ', sort grep { /^\d+ 2/ } split(/\n/, $out)),
		'0 2 200 | 0 2 200 | 92 2 200', 'HTTP/2: a stream is reset')
		or diag($out);
	ok(slurp("$dir/broken.$_") eq $whole->{data},
		"HTTP/2: another stream, $_")
		for 1, 3;

	my $got = slurp("$dir/broken.2");

	ok(length($got) && $got eq substr($hurt->{data}, 0, length($got)),
		'no wrong byte');
}

$t->done();
