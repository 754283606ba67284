package Test::Xet::Rights::World;

# Copyright (C) the ngx_http_xet_module authors

# Creates the data that the callers of the rights tests request: private and
# public repos of a Hub and of the API.  Names, hashes, sizes and bytes of their
# files are recognizable in any response.  A part of Test::Xet::Rights.
#
# A scene is a private repo, a bucket of the same name, and the tokens and URLs
# issued for it:
#
#     secret   has always been private
#     turned   was public when its tokens were issued
#     again    has since been deleted and created again
#     other    belongs to bob
#
# open is the public repo, api is a repo of the API without a Hub name, and
# none does not exist.

use warnings;
use strict;

use Digest::SHA qw/ sha256_hex /;
use JSON::PP ();
use MIME::Base64 qw/ encode_base64 /;

use Test::Xet::Bytes;
use Test::Xet::Rights::Token;
use Test::Xet::Ztensor;

my $json = JSON::PP->new()->canonical();

my %seeds = (secret => 11, turned => 12, again => 13, other => 14, open => 15,
	api => 16);

# Sets the properties of a scene that are known before its data is sent, and
# returns them.

sub scene {
	my ($self, $name) = @_;

	my $seed = $seeds{$name};
	my $owner = $name eq 'other' ? 'bob' : $self->{space};
	my $data = "zbytes${name}z" . random_bytes($seed,
		30_000 + 131 * $seed);
	my $zt = zt_file([ [ "ztensor${name}z", { shape => [ 2 + $seed ],
		data => pack('f*', map { $seed + $_ } 1 .. 2 + $seed) } ] ]);

	my $hashes = hash_file($data);

	return $self->{scenes}{$name} = {
		name => "z${name}z", owner => $owner,
		id => "$owner/z${name}z", hidden => "zhidden${name}z.bin",
		data => $data, zt => $zt->{bytes}, hash => $hashes->{hash},
		copied => "zcopied${name}z",
		size => length($data), sha256 => sha256_hex($data),
		chunk => $hashes->{chunks}[0]{hash},
		xorb => make_xorb($data)->{hash},
		zt_hash => hash_file($zt->{bytes})->{hash}
	};
}

# Returns a scene whose repo and files do not exist.

sub none {
	my ($self) = @_;

	my $hash = 'ab' x 32;

	return { name => 'znothingz', owner => $self->{space},
		id => "$self->{space}/znothingz", hash => $hash, chunk => $hash,
		xorb => $hash, zt_hash => $hash, sha256 => $hash, size => 5,
		store => 'none/none' };
}

# Returns regexes for the names, hashes, sizes and bytes of a thing.  A response
# that matches one of them reveals that the thing exists.

sub marks {
	my ($s) = @_;

	my @words = map { quotemeta($_) } grep { defined } @$s{qw/ name hidden
		hash sha256 chunk xorb zt_hash oid bucket_oid /};

	return (@words, $s->{data} ? map { quotemeta($_) }
		(substr($s->{data}, 0, 12), substr($s->{data}, 9000, 16)) : (),
		$s->{zt} ? 'ztensor' . ($s->{name} =~ s/^z//r) : (),
		$s->{store} && $s->{store} =~ /^_/
			? quotemeta($s->{store}) . '(?![0-9])' : (),
		$s->{size} ? "(?<![0-9a-fA-F])$s->{size}(?![0-9a-fA-F])" : ());
}

# --------------------------------------------------------------------------
# creating the scenes

sub make {
	my ($self) = @_;

	$self->{none} = $self->none();
	$self->make_api();

	if (!defined $self->{hub}) {
		$self->make_plain($_) for qw/ secret open other /;
		return;
	}

	$self->make_hub('secret', 1);
	$self->make_hub('open', 0);
	$self->make_hub('other', 1);

	# tokens and URLs are issued before the change; they are tested later

	$self->make_hub('turned', 0);
	$self->give('turned');
	$self->visible('turned', 1);

	$self->make_hub('again', 1);
	$self->give('again');
	$self->gone('again');
	$self->make_hub('again', 1);

	$self->give($_) for qw/ secret open /;

	for my $name (qw/ alice robin bob eve me /) {
		$self->{own}{$name} = "$name/zown";
		$self->send('POST', "$self->{base}/api/repos/create",
			$self->admin($name), $json->encode({ name => 'zown',
			organization => $name }));
	}
}

# Returns the headers of a caller with all permissions in a namespace.

sub admin {
	my ($self, $name) = @_;

	return { 'X-Who' => $name } if $self->{names};

	return $self->headers({ name => "admin of $name", scope => 'admin',
		sub => $name eq $self->{space} ? $self->{owner} : $name });
}

# Sends a request that must succeed.

sub send {
	my ($self, $method, $uri, $headers, $body, $type) = @_;

	my $r = $self->made_by(sub {
		return $self->http($method, $uri, { %$headers,
			defined $body ? ('Content-Type' => $type
				// 'application/json') : () }, $body);
	});

	die "$method $uri: $r->{status} $r->{body}\n"
		if $r->{status} !~ /^2/;

	return $r;
}

sub make_hub {
	my ($self, $name, $private) = @_;

	my $s = $self->scene($name);
	my $admin = $self->admin($s->{owner});
	my $base = $self->{base};

	$private = $private ? JSON::PP::true : JSON::PP::false;

	$self->send('POST', "$base/api/repos/create", $admin, $json->encode({
		name => $s->{name}, organization => $s->{owner},
		private => $private }));

	# files of one commit share a xorb; this file has its own xorb

	$self->commit($s, $admin, file('d/f.bin', $s->{data}));
	$self->commit($s, $admin, file('d/t.zt', $s->{zt}),
		file('d/c.bin', $s->{copied}),
		file('z-Q4_0.gguf', "GGUF $s->{name}"),
		file($s->{hidden}, 'of no matter'));

	$self->send('POST', "$base/api/models/$s->{id}/tag/main", $admin,
		'{"tag":"v1"}');
	$s->{oid} = $self->send('GET', "$base/api/models/$s->{id}", $admin)
		->json()->{sha};
	$s->{store} = $self->store("models/$s->{id}", '/main', $admin);

	$self->send('POST', "$base/api/buckets/$s->{id}", $admin,
		$json->encode({ private => $private }));
	$s->{bucket_store} = $self->store("buckets/$s->{id}", '', $admin);
	$self->fill_bucket($s, $admin);
}

sub commit {
	my ($self, $s, $admin, @files) = @_;

	$self->send('POST', "$self->{base}/api/models/$s->{id}/commit/main",
		$admin, join("\n", map { $json->encode($_) } { key => 'header',
			value => { summary => "ztitle$s->{name}" } }, @files),
		'application/x-ndjson');
}

sub file {
	my ($path, $data) = @_;

	return { key => 'file', value => { path => $path,
		encoding => 'base64', content => encode_base64($data, '') } };
}

# Returns the repo of the API that holds the files of a Hub repo.

sub store {
	my ($self, $path, $rev, $admin) = @_;

	my $token = $self->send('GET',
		"$self->{base}/api/$path/xet-write-token$rev", $admin)
		->json()->{accessToken};

	return Test::Xet::Rights::Token::claims($token)->{repo};
}

sub fill_bucket {
	my ($self, $s, $admin) = @_;

	my $hub = $self->{base};
	my $token = $self->send('GET',
		"$hub/api/buckets/$s->{id}/xet-write-token", $admin)
		->json()->{accessToken};
	my $hash = $self->send('PUT', "$self->{cas}/v1/files", { %$admin,
		Authorization => "Bearer $token" }, $s->{data})
		->json()->{hash};

	$self->send('POST', "$hub/api/buckets/$s->{id}/batch", $admin,
		join('', map { $json->encode({ type => 'addFile', path => $_,
			xetHash => $hash, mtime => 0 }) . "\n" }
			'd/f.bin', $s->{hidden}), 'application/x-ndjson');
}

# Makes the Hub issue the tokens and URLs for a scene, for the repo and for the
# bucket, to all callers, including callers that lose access later.

sub give {
	my ($self, $name) = @_;

	my $s = $self->{scenes}{$name};

	for my $caller (grep { $_->{given} } @{ $self->{table}->callers() }) {
		my $scene = $caller->{scene}
			// ($caller->{of} eq 'O' ? 'open' : 'secret');
		my ($by) = grep { $_->{name} eq $caller->{by} }
			@{ $self->{table}->callers() };

		next if $scene ne $name;

		for my $kind (qw/ models buckets /) {
			my $r = $self->http('GET', "$self->{base}/api/$kind/"
				. "$s->{id}/xet-$caller->{given}-token"
				. ($kind eq 'models' ? '/main' : ''),
				$self->headers($by));

			$self->{given}{$kind}{ $caller->{name} }
				= $r->json()->{accessToken}
				if $r->{status} == 200;
		}
	}

	# the names of the repo in the API, for tokens that the test itself
	# signs

	$self->{bound}{models}{$name} = $s->{store};
	$self->{bound}{buckets}{$name} = $s->{bucket_store};
	$self->{url}{$name} = $self->urls($s);
}

sub visible {
	my ($self, $name, $private) = @_;

	my $s = $self->{scenes}{$name};
	my $admin = $self->admin($s->{owner});

	$self->send('PUT', "$self->{base}/api/$_/$s->{id}/settings", $admin,
		$json->encode({ private => $private ? JSON::PP::true
			: JSON::PP::false })) for qw/ models buckets /;

	$s->{store} = $self->store("models/$s->{id}", '/main', $admin);
	$s->{bucket_store} = $self->store("buckets/$s->{id}", '', $admin);
}

# Repairs the effect of a request that should have been rejected, so that a
# fault is reported once.  $all recreates every scene: the Hub does not show
# whether the API has deleted the data of a repo.

sub repair {
	my ($self, $all) = @_;

	for my $name (grep { $self->{scenes}{$_}{bucket_store} }
		sort keys %{ $self->{scenes} })
	{
		my $s = $self->{scenes}{$name};
		my $admin = $self->admin($s->{owner});
		my $private = $name ne 'open';
		my @is = map { $self->http('GET',
			"$self->{base}/api/$_/$s->{id}", $admin) }
			qw/ models buckets /;

		if ($all || grep { $_->{status} != 200 } @is) {
			$self->http('DELETE', "$self->{base}/api/repos/delete",
				$admin, $json->encode({ name => $s->{name},
					organization => $s->{owner} }));
			$self->http('DELETE',
				"$self->{base}/api/buckets/$s->{id}", $admin);
			$self->make_hub($name, $private);

		} elsif (grep { !!$_->json()->{private} ne !!$private } @is) {
			$self->visible($name, $private);

		} else {
			next;
		}

		delete @$self{qw/ marks sent /};
		$self->give($name) if $name =~ /^(?:secret|open)$/;
	}
}

sub gone {
	my ($self, $name) = @_;

	my $s = $self->{scenes}{$name};
	my $admin = $self->admin($s->{owner});

	$self->{left}{$name} = $s;
	$self->send('DELETE', "$self->{base}/api/repos/delete", $admin,
		$json->encode({ name => $s->{name},
			organization => $s->{owner} }));
	$self->send('DELETE', "$self->{base}/api/buckets/$s->{id}", $admin);
}

# Returns LFS URLs: one of a file of the scene, and one for a new file.

sub urls {
	my ($self, $s) = @_;

	my %urls;

	for ([ download => $s->{sha256}, $s->{size} ],
		[ upload => sha256_hex('zlatez'), 6 ])
	{
		my ($operation, $oid, $size) = @$_;
		my $r = $self->send('POST',
			"$self->{base}/$s->{id}.git/info/lfs/objects/batch",
			$self->admin($s->{owner}), $json->encode({
				operation => $operation, objects => [
				{ oid => $oid, size => $size } ] }),
			'application/vnd.git-lfs+json')->json();

		($urls{$operation}) = $r->{objects}[0]{actions}{$operation}
			{href} =~ m!^https?://[^/]+(/.*)!;
	}

	return \%urls;
}

# --------------------------------------------------------------------------
# repos of the API

sub make_api {
	my ($self) = @_;

	my $s = $self->scene('api');

	$s->{store} = 'zapiz/zapiz';
	$self->put($s);
}

# Creates a repo of the API; without a Hub, there are three more of them.

sub make_plain {
	my ($self, $name) = @_;

	my $s = $self->scene($name);

	$s->{store} = $s->{id};
	$self->put($s);
	$self->{t}->sql("SELECT xet.repo_set_public('$s->{store}', true)")
		if $name eq 'open' && !$self->{makes};
}

sub put {
	my ($self, $s) = @_;

	my $headers = $self->{makes} || $self->headers({ scope => 'write',
		name => "repo $s->{store}", sub =>
			$s->{name} eq 'zapiz' ? 'ann' : 'maker',
		repo => $s->{store} });

	for my $data ($s->{data}, $s->{zt}) {
		$self->send('PUT', "$self->{cas}/v1/files", $headers, $data);
	}
}

1;
