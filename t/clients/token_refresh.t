#!/usr/bin/perl

# Copyright (C) the ngx_http_xet_module authors

# Real clients whose token expires while they work: hf_xet, which requests
# tokens from a token location, and huggingface_hub, which requests them from a
# Hub.  A token is valid for four seconds, and each session pauses for longer
# than four seconds.

use warnings;
use strict;

use Test::More;

use FindBin;
use lib "$FindBin::Bin/../lib";
use Test::Xet;
use Test::Xet::Hub;
use Test::Xet::Real;

use Digest::SHA qw/ sha256_hex /;
use File::Temp qw/ tempdir /;
use JSON::PP ();

my $life = 4;
my $pause = 5;
my $size = 3000000;
my $mark = 0;
my $dir = tempdir(CLEANUP => 1);
my @files = map { make_mix("$dir/file$_", $_, $size) } 1 .. 3;

# --------------------------------------------------------------------------
# hf_xet.  The subject of a token is the time when the token was made.

my $t = Test::Xet->new(workers => 2, log => 'info', timeout => 300,
	http => <<'EOC', locations => <<'EOL');
xet_token_key    %%DIR%%/token.key;
    xet_token_cache  zone=tokens:256k;
    log_format       ages "$msec $xet_subject $status $uri";
EOC
access_log %%DIR%%/ages.log ages;

        location /api/ {
            xet_api;
            xet_auth token;
            xet_access store;
            client_max_body_size 80m;
        }

        location = /v1/telemetry {
            xet_api;
            xet_api_base "";
            xet_auth off;
        }

        location /xorbs/ {
            %%DATA%%
        }

        location ~ ^/token/(?<scope>read|write)$ {
            xet_token;
            xet_token_scope $scope;
            xet_token_subject $msec;
            xet_token_lifetime 4s;
        }
EOL

$t->token_key();
$t->run();

my $token = $t->get('/token/write')->json();
my $infos = hf_xet({ env => { XET_TOKEN => $token->{accessToken},
	XET_TOKEN_EXPIRY => $token->{exp}, XET_PAUSE => $pause,
	XET_REFRESH_URL => $t->url('/token/write') } },
	'upload', 'session', $t->url('/api'), @files);

is(scalar(@{ $infos || [] }), 3, 'hf_xet: three files in a session');
is_deeply([ map { $_->{size} } @$infos ], [ ($size) x 3 ],
	'hf_xet: the right sizes');
ages('hf_xet, upload');

my @ranges = ([ 0, 1000000 ], [ 1000000, 2000000 ], [ 2000000, 3000000 ]);
my $got = hf_xet({ env => { XET_TOKEN => $token->{accessToken},
	XET_TOKEN_EXPIRY => $token->{exp}, XET_PAUSE => $pause,
	XET_REFRESH_URL => $t->url('/token/read') } },
	'range', $t->url('/api'), $infos->[1]{hash}, $size,
	map { "$_->[0]:$_->[1]" } @ranges);

is_deeply([ map { $_->{sha256} } @{ $got || [] } ],
	[ map { sha256_hex(file_slice($files[1], @$_)) } @ranges ],
	'hf_xet: three ranges in a session');
ages('hf_xet, download');

# an expired token is refused

is($t->get('/api/v1/reconstructions/' . 'a' x 64, { Authorization =>
	"Bearer $token->{accessToken}" })->{status}, 401,
	'the first token has expired');

unlike($t->log(), qr/\[(error|crit|alert|emerg)\]/, 'no errors logged');

$t->check();

# --------------------------------------------------------------------------
# huggingface_hub

$t = Test::Xet->new(conf => '', workers => 2, log => 'info', timeout => 300,
	http => "xet_token_lifetime ${life}s;");

Test::Xet::Hub::prepare($t);
$t->run();

my $hub = Test::Xet::Hub->new($t);
my $began = time();
my $python = Test::Xet::Real::build() . '/clients/huggingface_hub/bin/python';

die "no client in $python, run t/clients/setup.sh\n" unless -x $python;

{
	local @ENV{qw/ HF_ENDPOINT HF_TOKEN HF_HOME HF_HUB_DISABLE_TELEMETRY
			HF_HUB_DISABLE_PROGRESS_BARS /}
		= ($hub->url(), 'hf_test', tempdir(CLEANUP => 1), 1, 1);
	delete local $ENV{HF_XET_CACHE};

	open(my $fh, '-|', 'timeout', 120, $python,
		"$FindBin::Bin/../clients/hub_paced.py", 'alice/paced', $pause,
		"$dir/hub", @files) or die "$python: $!\n";

	$got = hf_xet_wait($fh);
}

is_deeply($got, [ map { sha256_file($_) } @files ],
	'huggingface_hub: three files, uploaded and downloaded');
cmp_ok(time() - $began, '>', 5 * $life,
	'huggingface_hub: longer than the tokens are valid');

my @calls = $hub->calls();
my @requests = $hub->requests();

for my $scope (qw/ read write /) {
	cmp_ok(scalar(grep { $_->[1] =~ m!/xet-$scope-token/! } @calls), '>=',
		3, "huggingface_hub: several $scope tokens");
}

cmp_ok(scalar(grep { $_->{uri} =~ m!/shards$! } @requests), '>=', 3,
	'huggingface_hub: shards');
cmp_ok(scalar(grep { $_->{uri} =~ m!/reconstructions/! } @requests), '>=', 3,
	'huggingface_hub: reconstructions');
is(join(' ', map { $_->{uri} } grep { $_->{status} =~ /^40[13]$/ } @requests),
	'', 'huggingface_hub: nothing was refused');

$hub->stop();
$t->done();

# --------------------------------------------------------------------------

# Checks the API requests since the last call: no token was valid during all of
# them, and no request was refused.

sub ages {
	my ($name) = @_;

	my $log = $t->read_file('ages.log');
	my @requests = grep { $_->[3] =~ m!^/api/! && $_->[1] ne '-' }
		map { [ split(/ /, $_, 4) ] } split(/\n/, substr($log, $mark));

	$mark = length($log);

	my %made = map { $_->[1] => 1 } @requests;
	my ($first) = sort { $a <=> $b } keys %made;
	my ($last) = sort { $b <=> $a } map { $_->[0] } @requests;

	cmp_ok(scalar(keys %made), '>=', 2, "$name: several tokens");
	cmp_ok($last - $first, '>', $life, "$name: past an expiry");
	is(join(' ', grep { $_->[2] == 401 } @requests), '',
		"$name: none was refused");
}
