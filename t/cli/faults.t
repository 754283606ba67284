#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Failures of xet put and xet get: truncated downloads are resumed, expired URLs
# are requested again and damage is detected.  Every failure has an exit code
# and prints one line.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Cli;
use Test::Xet::Process qw/ reap slurp spew /;

use File::Temp qw/ tempdir /;

my $api = <<'EOC';
location /api/ {
            xet_api;
            xet_auth off;
            client_max_body_size 80m;

            if (-f %%DIR%%/busy) {
                return 503;
            }
        }
EOC

my $t = Test::Xet->new(workers => 1, log => 'info', timeout => 300,
	http => <<'EOC', locations => $api . <<'EOC2');
log_format bytes "$uri $status $body_bytes_sent $request_completion";
    access_log %%DIR%%/bytes.log bytes;
    xet_token_key %%DIR%%/token.key;

    server {
        listen 127.0.0.1:%%PORT_8081%%;

        location /api/ {
            xet_api;
            xet_auth off;
        }

        location /api/v2/reconstructions/ {
            return 404;
        }

        location /ignores/ {
            rewrite ^/ignores(/.*)$ $1 break;
            root %%STORE%%;
            max_ranges 0;
        }

        location /token/ {
            xet_api;
            xet_api_base /token;
            xet_auth token;
            xet_access store;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8443%% ssl;
        ssl_certificate %%DIR%%/cert.pem;
        ssl_certificate_key %%DIR%%/cert.key;

        location /api/ {
            xet_api;
            xet_auth off;
        }
    }
EOC

        location /xorbs/ {
            if (-f %%DIR%%/refuse) {
                return 403;
            }

            %%DATA%%
            limit_rate $rate;
        }

        set $rate 0;

        if (-f %%DIR%%/slow) {
            set $rate 3m;
        }
EOC2

my $key = $t->dir() . '/url.key';
my $dir = tempdir(CLEANUP => 1);
my $out = "$dir/out";

$t->token_key();

my $cert = $t->dir() . '/cert';

system('openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1'
	. ' -addext subjectAltName=IP:127.0.0.1'
	. " -keyout $cert.key -out $cert.pem > /dev/null 2>&1") == 0 or die;

$t->run();

# --------------------------------------------------------------------------
# the server is down, or the file is not found

my $none = 'ab' x 32;

fails(1, qr/^xet: server: \S+: 404 file_not_found: no such file$/,
	'unknown file', 'get', $none);
fails(2, qr/^xet: xyz: a hash must be 64 hexadecimal digits$/, 'no hash',
	'get', 'xyz');
fails(2, qr/^xet: get: unknown option --nothing$/, 'unknown option',
	'get', '--nothing', $none);
fails(2, qr/^xet: get: option --range needs a value$/, 'no value', 'get',
	'--range');
fails(2, qr/^xet: get: expected HASH/, 'no operand', 'get');
fails(2, qr/^xet: get: unexpected operand "x"$/, 'two operands', 'get', $none,
	'x');
fails(2, qr/^xet: get: --parallel must be a number from 1 to 64$/, 'no number',
	'get', '--parallel', '0', $none);
fails(2, qr/^xet: nothing: unknown verb/, 'unknown verb', 'nothing');
fails(2, qr/^xet: endpoint: set/, 'no endpoint', { endpoint => '' }, 'get',
	$none);
fails(4, qr/^xet: server: \S+: .*[Cc]onnect/, 'nobody there',
	{ endpoint => 'http://127.0.0.1:1/api' }, 'get', '--retries', 1, $none);
fails(1, qr/^xet: server: \S+: 404 no_route/, 'another route', {
	endpoint => $t->url('/api/nothing') }, 'put', "$FindBin::Bin/cli.t");
fails(3, qr/^xet: \S+: No such file or directory$/, 'no folder for it',
	'get', '-o', "$dir/none/x", '0' x 64);
fails(3, qr/^xet: \S+: No such file or directory$/, 'nothing to put', 'put',
	"$dir/none");
fails(3, qr/^xet: \S+: cannot be read$/, 'a folder to put', 'put', $dir);

spew($t->dir() . '/busy', '');

my $run = xet_start($t, 'get', '-o', $out, '0' x 64);

select(undef, undef, undef, 0.3);
unlink($t->dir() . '/busy');
is(xet_wait($run)->{code}, 0, 'a busy server is asked again');
is(-s $out, 0, 'the empty file');

spew($t->dir() . '/busy', '');
fails(4, qr/^xet: server: \S+: 503/, 'a server that stays busy', 'get',
	'--retries', 1, '0' x 64);
fails(4, qr/^xet: server: \S+: 503/, 'and does not take anything', 'put',
	'--retries', 0, "$FindBin::Bin/cli.t");
like(xet_wait(xet_start($t, 'put', '--retries', 2, "$FindBin::Bin/cli.t"))
	->{err},
	qr/^xet: server: retrying \(503\), 2 of 2 in \d+ s\n.*server: \S+: 503/,
	'and xet prints that it waits');
unlink($t->dir() . '/busy');

# --------------------------------------------------------------------------
# tokens and certificates

my $protected = $t->url('/token', 8081);

fails(4, qr/: 401 invalid_token: a token is required$/, 'no token',
	{ endpoint => $protected }, 'get', $none);

my $token = token();

fails(1, qr/: 404 file_not_found/, 'XET_TOKEN',
	{ endpoint => $protected, env => { XET_TOKEN => $token } },
	'get', $none);

spew("$dir/token", "$token\n");

fails(1, qr/: 404 file_not_found/, '--token-file',
	{ endpoint => $protected }, 'get', '--token-file', "$dir/token", $none);
fails(4, qr/token file \S+: No such file/, '--token-file that is not there',
	{ endpoint => $protected }, 'get', '--token-file', "$dir/none", $none);

my $tls = 'https://127.0.0.1:' . $t->port(8443) . '/api';

fails(4, qr/^xet: server: .*certificate/, 'a certificate of nobody',
	{ endpoint => $tls }, 'get', '--retries', 0, $none);
fails(1, qr/: 404 file_not_found/, '--cacert', { endpoint => $tls },
	'get', '--cacert', "$cert.pem", $none);

# --------------------------------------------------------------------------
# version 1 of the reconstruction API

my $data = mix(3, 9000000);
my $file = $t->upload($data, xorb_chunks => 40);
my $hash = $file->{hash};

is(xet($t, { endpoint => $t->url('/api', 8081) }, 'get', '-o', $out, $hash)
	->{code}, 0, 'a server with v1 alone');
ok(slurp($out) eq $data, 'its file');
unlink($out);

# --------------------------------------------------------------------------
# a killed download is resumed

my $large = random_bytes(8, 24000000);
my $big = $t->upload($large);

spew($t->dir() . '/slow', '');

for my $signal (qw/ KILL INT /) {
	my $size = -s "$out.xet-state" || 0;

	$run = xet_start($t, 'get', '--parallel', 1, '-o', $out,
		$big->{hash});

	ok(wait_for(30, sub { (-s "$out.xet-state" || 0) > $size + 48 * 30 }),
		"$signal: on the way");

	kill($signal, $run->{pid});

	my $r = xet_wait($run);

	is($r->{code}, $signal eq 'INT' ? 130 : undef, "$signal: exit code");
	ok(!-e $out, "$signal: nothing under the name");
	ok(-e "$out.xet-part", "$signal: the part is kept");
	like($r->{err}, qr/^xet: \Q$out\E: \d+ bytes are kept in /m,
		"$signal: reported") if $signal eq 'INT';
}

my $kept = (-s "$out.xet-state") / 48 - 1;

unlink($t->dir() . '/slow');

# two downloads to the same target

open(my $lock, '+<', "$out.xet-state") or die;
flock($lock, 2) or die;
fails(3, qr/another download of this file is running$/, 'two downloads', 'get',
	'-o', $out, $big->{hash});
close($lock);

my $before = -s $t->dir() . '/bytes.log';

is(xet($t, 'get', '-o', $out, $big->{hash})->{code}, 0, 'resumed');
ok(slurp($out) eq $large, 'the whole file');

my $got = received($before);

cmp_ok($got, '<', 24000000 - ($kept - 2) * 8192, "$kept chunks were there");
cmp_ok($got, '>', 1000000, 'and some were not');
is_deeply([ glob("$out.xet-*") ], [], 'nothing left beside');

# partial data that is damaged, or belongs to another file, is discarded

spew("$out.xet-part", 'x' x 100000);
spew("$out.xet-state", slurp_state($big->{hash}));
unlink($out);
is(xet($t, 'get', '-o', $out, $big->{hash})->{code}, 0, 'a damaged part');
ok(slurp($out) eq $large, 'its file');

spew("$out.xet-part", 'x' x 100000);
spew("$out.xet-state", slurp_state($hash) . 'y' x 30);
is(xet($t, 'get', '-o', $out, $big->{hash})->{code}, 0, 'another part');
ok(slurp($out) eq $large, 'its file');

# --------------------------------------------------------------------------
# the server dies in the middle of a response

spew($t->dir() . '/slow', '');
unlink($out);

$run = xet_start($t, 'get', '-o', $out, $big->{hash});

ok(wait_for(30, sub { (-s "$out.xet-state" || 0) > 48 * 10 }), 'on the way');
$t->kill_worker('KILL');
unlink($t->dir() . '/slow');
is(xet_wait($run)->{code}, 0, 'a worker is killed');
ok(slurp($out) eq $large, 'the whole file');

# --------------------------------------------------------------------------
# URLs expire during a download: here the test removes their key

spew($t->dir() . '/slow', '');
unlink($out);

$before = -s $t->dir() . '/bytes.log';
$run = xet_start($t, 'get', '--json', '--parallel', 1, '-o', $out, $hash);

ok(wait_for(30, sub { -e "$out.xet-part" && -s "$out.xet-part" }),
	'on the way');

my $old = slurp($key);

spew($key, 'url:k2:' . '7a' x 32 . "\n");
unlink($t->dir() . '/slow');
$t->reload();

my $r = xet_wait($run);

is($r->{code}, 0, 'expired URLs') or diag($r->{err});
ok(slurp($out) eq $data, 'the whole file');
like(substr(slurp($t->dir() . '/bytes.log'), $before), qr!/xorbs/\S+ 403 !,
	'there were some');

spew($t->dir() . '/refuse', '');
unlink($out);
fails(4, qr!^xet: server: \S+/xorbs/[^?]+: 403$!, 'URLs that never work',
	'get', '-o', $out, $hash);
ok(!-e $out, 'nothing under the name');
unlink($t->dir() . '/refuse', "$out.xet-part", "$out.xet-state");

# --------------------------------------------------------------------------
# a server that ignores ranges; the data URLs point to that server

SKIP: {
	skip('the location has files', 2) if $t->s3();

	$t->write_conf(undef, directives => {
		xet_url_base => $t->url('/ignores', 8081) });
	$t->reload();

	fails(4, qr/: HTTP 200 instead of the requested range$/,
		'ranges are ignored', 'get', '--range', '4000000-4000010',
		'-o', $out, $hash);

	$t->write_conf(undef, directives => {});
	$t->reload();
}

# --------------------------------------------------------------------------
# damage

my $xorb = $file->{xorbs}[1]{hash};
my $copy = $t->copy($xorb);
my $good = $t->copy_bytes($copy);

flip($copy, length($good) / 2);

fails(1, qr/^xet: damaged: /, 'a flipped bit', 'get', '-o', $out, $hash);
ok(!-e $out, 'nothing under the name');
fails(1, qr/^xet: damaged: /, 'a flipped bit, to a pipe', 'get', '-o', '-',
	$hash);
$t->put_copy($copy, $good);
is(xet($t, 'get', '-o', $out, $hash)->{code}, 0, 'repaired: resumed');
ok(slurp($out) eq $data, 'the whole file');
unlink($out);

# any bytes decode as an uncompressed chunk: damage is detected by the file hash

my $plain = $t->upload(random_bytes(9, 300000));

flip($t->copy($plain->{xorbs}[0]{hash}), 1000);
fails(1, qr/^xet: damaged: the content on the server has the hash /,
	'a flipped bit of a plain chunk', 'get', '-o', $out, $plain->{hash});
is_deeply([ glob("$out*") ], [], 'nothing is kept');

$t->cut_copy($copy, length($good) - 1);
fails(4, qr/^xet: server: .*: 50[02]/, 'a xorb that was cut', 'get',
	'--retries', 0, '-o', $out, $hash);
$t->remove_copy($copy);
fails(1, qr/^xet: server: .*: 404/, 'a xorb that is gone', 'get', '-o', $out,
	$hash);

$t->allow(qr/open\(\) .* failed/);
$t->done();

# --------------------------------------------------------------------------

# Runs xet in a separate folder; checks the exit code, and that stderr has one
# line with the reason.  A line about kept bytes is not counted.

sub fails {
	my ($code, $line, $name, @args) = @_;

	my %o = ref $args[0] ? %{ shift @args } : ();
	my $result = xet($t, { dir => $dir, %o }, @args);

	is($result->{code}, $code, "$name: exit code") or diag($result->{err});
	like($result->{err}, $line, "$name: what it says");

	my @lines = grep { !/^xet: \S+: [1-9]\d* bytes are kept in / }
		split(/\n/, $result->{err});

	is(scalar @lines, 1, "$name: one line") or diag($result->{err});
}

sub flip {
	my ($copy, $pos) = @_;

	$t->flip_copy($copy, int($pos));
}

# Returns the number of xorb bytes sent since an offset of the log.

sub received {
	my ($from) = @_;

	my $sum = 0;

	for (split(/\n/, substr(slurp($t->dir() . '/bytes.log'), $from))) {
		$sum += $1 if m!^/xorbs/\S+ 206 (\d+)!;
	}

	return $sum;
}

# Returns a state file for the first 50,000 bytes of a file.

sub slurp_state {
	my ($hash) = @_;

	return 'XETPART1' . "\0" x 8 . bytes($hash)
		. pack('Q<L<L<', 0, 50000, 50000) . bytes('cd' x 32);
}

sub bytes {
	my ($hash) = @_;

	return join('', map { scalar reverse(pack('H16', $_)) }
		$hash =~ /(.{16})/g);
}

sub token {
	my $text = xet($t, 'token', '--key', $t->dir() . '/token.key')->{out};

	chomp($text);

	return $text;
}
